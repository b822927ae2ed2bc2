// SPDX-License-Identifier: GPL-2.0-or-later
//
// Reads the Pss of a job's other processes; see processes.h. Valgrind's mappings in another process are recognised by
// address: a fork has them where this process has, and the core's own memory lies above one address.

#include "pages/processes.h"
#include "base/clock.h"
#include "base/kernel.h"
#include "base/text.h"
#include "host/host.h"
#include "pages/mappings.h"
#include "pages/smaps.h"
#include "trace/trace.h"

#include <dirent.h>

#include <asm/unistd.h>
#include <fcntl.h>

#define MOST_OTHERS 64

typedef struct {
    Int pid;
    ULong share; // in bytes
} Other;

static Other others[MOST_OTHERS];
static UInt n_others;

static enum { UNKNOWN, ALONE, HAS_OTHERS } relatives;
static Int own_id, parent_id; // a native recorder also samples from a process beside the program

static Addr core_start; // start of the host's own memory; 0: not determined yet
static double share;

static Bool is_programs(const Vma *vma)
{
    Mapping mapping;
    if (jm_mappings_is_device(vma->path))
        return False;
    if (host_mapping_at(vma->start, &mapping))
        return mapping.is_programs;
    const Addr end = jm_mappings_main_stack_end();
    return vma->start < core_start || (vma->start < end && end - vma->start <= HOST_LONGEST_STACK);
}

static void add_mapping(const Vma *vma)
{
    if (vma->shared && is_programs(vma))
        share += vma->shared;
}

static void add_process(const HChar *name)
{
    Int pid = jm_text_is_digit(*name) ? host_recorded_by((Int)jm_text_number(name, NULL)) : 0;
    if (pid == parent_id)
        relatives = HAS_OTHERS;
    if (pid != 0 && pid != own_id && n_others < MOST_OTHERS)
        others[n_others++] = (Other){pid, 0};
}

static void find_all(void)
{
    static HChar entries[4096] __attribute__((aligned(8)));
    Int opened = jm_open("/proc", O_RDONLY, 0);
    Long n;
    if (jm_is_error(opened))
        return;
    while ((n = jm_kernel_call(__NR_getdents64, opened, (UWord)entries, sizeof entries, 0, 0)) > 0)
        for (Long at = 0; at < n;) {
            const struct dirent *entry = (const struct dirent *)(entries + at);
            add_process(entry->d_name);
            at += entry->d_reclen;
        }
    jm_close(opened);
}

#define MIN_INTERVAL_MS 100
// After a reading, pause for COST_DIVISOR times its cost; if due, a 16th of the run at most.
#define COST_DIVISOR 64
#define END_DIVISOR  16

static ULong begun_ms, next_due_ms, cost_ms;

// A reading is dropped if the own Pss has changed by more than 1/STEADY_DIVISOR since it was read: a child that touches
// its parent's pages changes both shares.
#define STEADY_DIVISOR 32

static void rollup_line(const HChar *line, void *context)
{
    ULong bytes;
    if (jm_text_labelled_bytes(line, "Pss", &bytes) || jm_text_labelled_bytes(line, "Shared_Hugetlb", &bytes) ||
        jm_text_labelled_bytes(line, "Private_Hugetlb", &bytes))
        *(ULong *)context += bytes;
}

static Bool is_steady(ULong own_share)
{
    ULong now = 0; // so before Linux 4.14
    jm_text_each_line("/proc/self/smaps_rollup", rollup_line, &now);
    ULong change = now > own_share ? now - own_share : own_share - now;
    return now == 0 || change <= now / STEADY_DIVISOR;
}

ULong jm_processes_sample(Bool is_due, ULong own_share)
{
    if (!core_start)
        core_start = host_own_memory();
    if (relatives == UNKNOWN) {
        relatives = ALONE;
        find_all();
    }
    n_others = 0;
    const ULong begin = jm_clock_ms();
    const Bool is_cheap = cost_ms * END_DIVISOR <= begin - begun_ms;
    if (relatives == ALONE || (begin < next_due_ms && !(is_due && is_cheap)))
        return 0;
    find_all();
    for (UInt i = 0; i < n_others; i++) {
        share = 0;
        others[i].share = jm_smaps_each(others[i].pid, add_mapping) ? (ULong)share : 0;
    }
    if (n_others && !is_steady(own_share))
        n_others = 0;
    const ULong end = jm_clock_ms();
    cost_ms = end - begin;
    const ULong pause = cost_ms * COST_DIVISOR;
    next_due_ms = end + (pause > MIN_INTERVAL_MS ? pause : MIN_INTERVAL_MS);
    return cost_ms;
}

void jm_processes_write(ULong time)
{
    HChar name[32];
    for (UInt i = 0; i < n_others; i++) {
        if (others[i].share == 0) // the process has ended
            continue;
        jm_format(name, sizeof name, "pss.%d", others[i].pid);
        jm_trace_system(time, name, others[i].share);
    }
    n_others = 0;
}

void jm_processes_before_fork(void)
{
    relatives = HAS_OTHERS;
}

void jm_processes_begin(void)
{
    own_id = jm_process_id();
    parent_id = jm_parent_id();
    begun_ms = jm_clock_ms();
    next_due_ms = 0;
    n_others = 0;
}
