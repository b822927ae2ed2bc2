// SPDX-License-Identifier: GPL-2.0-or-later
//
// Failed allocations; see exhaustion.h. A site counts the failures of each stack and decides which of them are
// recorded. A thread keeps its last failed request, so that its next attempt can be joined to that event.

#include "events/exhaustion.h"
#include "base/clock.h"
#include "base/hooks.h"
#include "base/kernel.h"
#include "base/map.h"
#include "base/per_thread.h"
#include "calls/scope.h"
#include "events/snapshot.h"
#include "host/host.h"
#include "ledger/account.h"
#include "trace/trace.h"

#include <asm/unistd.h>
#include <sys/resource.h>
#include <errno.h>
#include <sys/mman.h>

#define ALL_OF_A_STACK 4   // failures recorded per stack; then one at each doubling of their number
#define ALL_TOLD       256 // the same, for the whole run
#define MOST_JOINED    4   // failed retries joined to a recorded event

typedef struct Site {
    struct Site *next; // MapNode
    UWord node;        // MapNode
    ULong n_failed;
} Site;

static Map sites = JM_MAP("jm.exhaustion");
static ULong n_failed, n_told;

static Bool is_next_told(NodeId node)
{
    Site *site = jm_map_find(&sites, node);
    if (!site) {
        site = host_alloc_zeroed("jm.exhaustion", 1, sizeof *site);
        site->node = node;
        jm_map_add(&sites, site);
    }
    site->n_failed++;
    n_failed++;
    return (site->n_failed <= ALL_OF_A_STACK || jm_is_power_of_two(site->n_failed)) &&
           (n_told < ALL_TOLD || jm_is_power_of_two(n_failed));
}

// ---- retries of a thread -------------------------------------------------------------------------------------

typedef struct {
    UInt event;       // last recorded event; 0 means none
    UInt open;        // event without an outcome: neither a retry succeeded nor the framework gave up; 0 means none
    ULong open_bytes; // bytes requested in the open event
    UInt n_again;     // failures joined to one event
    Bool is_failing;
    ULong tried_bytes; // last counted failed attempt; 0 after a success or a retry
} Thread;

static PerThread threads = JM_PER_THREAD("jm.exhaustion", Thread, NULL);
static ULong n_retries, n_given_up;

static Thread *thread_of(ThreadId tid)
{
    return JM_OF_THREAD(&threads, Thread, tid);
}

static void resolve(Thread *t, const HChar *outcome)
{
    if (t->open) {
        ULong now = jm_clock_now();
        jm_snapshot_write_totals(now);
        jm_trace_outcome(t->open, now, outcome);
    }
    t->open = 0;
}

void jm_exhaustion_tried(ThreadId tid, ULong bytes, Bool has_failed, Bool is_piece, Bool is_counted)
{
    if (!jm_per_thread_has_any(&threads))
        return; // fast path: no allocation has failed yet
    Thread *t = thread_of(tid);
    if (!has_failed && !is_piece) {
        if (t->open_bytes == bytes)
            resolve(t, "retried");
        t->open = 0;
        t->is_failing = False;
    }
    if (!is_counted)
        return;
    if (t->tried_bytes == bytes) {
        n_retries++;
        t->tried_bytes = 0;
    } else {
        t->tried_bytes = has_failed ? bytes : 0;
    }
}

void jm_exhaustion_pieces_used(ThreadId tid)
{
    if (!jm_per_thread_has_any(&threads))
        return;
    resolve(thread_of(tid), "retried");
    thread_of(tid)->is_failing = False;
}

// ---- events --------------------------------------------------------------------------------------------------

// Larger requests are garbage numbers: no address space is as large, and more memory would not help.
#define ADDRESS_BITS 48

Bool jm_exhaustion_failed(ThreadId tid, const HChar *api, UInt error, Kind kind, ULong bytes)
{
    if (jm_kind_side(kind) == SIDE_HOST && bytes >> ADDRESS_BITS)
        return False;
    Bool ignored;
    NodeId node = jm_scope_capture(tid, &ignored);
    Thread *t = thread_of(tid);
    UInt again = t->open && t->open_bytes == bytes && t->n_again < MOST_JOINED ? t->open : 0;
    t->n_again = again ? t->n_again + 1 : 0;
    t->event = t->open = 0;
    t->is_failing = True;
    if (ignored || !(is_next_told(node) || again))
        return False;
    t->event = t->open = ++n_told;
    t->open_bytes = bytes;
    ULong now = jm_clock_now();
    UInt name = jm_trace_string(api);
    AccountId account = jm_account(node, kind);
    jm_trace_exhaustion(t->event, now, tid, account, name, error, bytes, again);
    ProcessLimit limit;
    if (jm_kind_side(kind) == SIDE_HOST && jm_limit(RLIMIT_AS, &limit) && limit.soft != ~0ULL)
        jm_trace_exhaustion_figure(t->event, "address-space-limit", limit.soft);
    jm_hooks.oom_recorded(t->event);
    jm_snapshot_take(SNAPSHOT_OUT_OF_MEMORY);
    return True;
}

void jm_exhaustion_figure(ThreadId tid, const HChar *figure, ULong bytes)
{
    if (thread_of(tid)->event)
        jm_trace_exhaustion_figure(thread_of(tid)->event, figure, bytes);
}

void jm_exhaustion_framework(ThreadId tid, ULong bytes, ULong allocated_bytes, ULong reserved_bytes)
{
    Thread *t = thread_of(tid);
    n_given_up++;
    t->tried_bytes = 0; // the next attempt is not a retry
    // A framework with a limit of its own gives up without asking the driver.
    if (!t->is_failing)
        jm_exhaustion_failed(tid, "reportOutOfMemoryToProfiler", 0, KIND_DEVICE, bytes);
    t->is_failing = False;
    if (!t->open)
        return;
    jm_exhaustion_figure(tid, "framework-request", bytes);
    jm_exhaustion_figure(tid, "framework-allocated", allocated_bytes);
    jm_exhaustion_figure(tid, "framework-reserved", reserved_bytes);
    resolve(t, "raised");
    jm_trace_flush();
}

// ---- system calls --------------------------------------------------------------------------------------------

void jm_exhaustion_after_syscall(ThreadId tid, UInt number, const UWord *args, Long res)
{
    if (!jm_is_error(res) || res != -ENOMEM)
        return;
    // (address, length, protection, flags, …). PROT_NONE reserves address space, not memory.
    if (number == __NR_mmap && args[2] != PROT_NONE)
        jm_exhaustion_failed(tid, "mmap", ENOMEM, args[3] & MAP_ANONYMOUS ? KIND_ANON : KIND_FILE, args[1]);
    // (address, old length, new length, …)
    if (number == __NR_mremap && args[2] > args[1])
        jm_exhaustion_failed(tid, "mremap", ENOMEM, KIND_ANON, args[2] - args[1]);
}

void jm_exhaustion_write_counters(void)
{
    jm_trace_nonzero("out-of-memory", n_failed);
    jm_trace_nonzero("cuda-alloc-retries", n_retries);
    jm_trace_nonzero("framework-out-of-memory", n_given_up);
}

void jm_exhaustion_after_fork_in_child(void)
{
    n_failed = n_told = n_retries = n_given_up = 0;
    jm_per_thread_forget(&threads);
    jm_map_clear(&sites, host_free);
}
