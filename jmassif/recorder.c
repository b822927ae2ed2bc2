// SPDX-License-Identifier: GPL-2.0-or-later
//
// What happens in the profiled program (host/events.h) goes to the folders from here; only this file knows them all.
// Data flows one way:
//
//     heap/, cuda/, driver/, pages/                     allocations              (sources)
//     stack/, unwind/, python/, symbols/, attribution/  call stacks and owners   (attribution)
//     ledger/, tensors/                                 balances, totals, peaks
//     events/, trace/                                   what is written, when    → jmassif.out.<pid> → reporter

#include "attribution/owner.h"
#include "base/client_memory.h"
#include "base/clock.h"
#include "base/hooks.h"
#include "base/libc.h"
#include "base/options.h"
#include "base/per_thread.h"
#include "base/text.h"
#include "calls/scope.h"
#include "copies/copies.h"
#include "cuda/cuda.h"
#include "cuda/query.h"
#include "device/blocks.h"
#include "driver/driver.h"
#include "events/exhaustion.h"
#include "events/region.h"
#include "events/snapshot.h"
#include "heap/containers.h"
#include "heap/heap.h"
#include "host/events.h"
#include "host/host.h"
#include "ledger/account.h"
#include "ledger/live_tensors.h"
#include "machine/manifest.h"
#include "pages/mappings.h"
#include "pages/pages.h"
#include "pages/processes.h"
#include "python/python.h"
#include "stack/stack.h"
#include "stack/thread.h"
#include "symbols/elf.h"
#include "symbols/file_pages.h"
#include "symbols/symbol.h"
#include "tensors/tensor.h"
#include "trace/trace.h"
#include "unwind/step.h"
#include "unwind/unwind.h"

#include <asm/unistd.h>
#include <linux/prctl.h>

// ---- object files --------------------------------------------------------------------------------------------

static void forget_mappings(void)
{
    jm_forget_readable();
    jm_elf_forget();
    jm_code_forget();
}

// Other code may be at this address now, such as a JIT compiler's.
static void on_other_code(Addr start, SizeT bytes, Bool is_code)
{
    if (jm_unwind_mapping_changed(start, bytes, is_code) && is_code) {
        jm_symbol_forget(start, bytes);
        jm_stack_forget();
    }
}

void event_mapped(Addr start, SizeT bytes, Bool is_readable, Bool is_code, Bool has_symbols)
{
    if (!is_readable || is_code)
        forget_mappings(); // the mapping may replace readable memory, or another object's
    else
        jm_code_forget();
    on_other_code(start, bytes, is_code);
    if (is_code)
        jm_symbol_object_mapped(start, bytes);
    if (has_symbols)
        jm_symbol_tell_objects(False);
    jm_copies_ended(start, bytes); // it may replace memory
    jm_mappings_mapped(start, bytes);
}

static Bool has_preload; // the preload library, which intercepts malloc and CUDA

static void on_object(const HChar *soname, const HChar *path, Addr code)
{
    has_preload |= jm_symbol_is_preload_library(path);
    jm_manifest_object(soname, path);
    jm_python_object(path, code);
}

void event_protected(Addr start, SizeT bytes, Bool is_code)
{
    forget_mappings();
    on_other_code(start, bytes, is_code);
}

void event_unmapped(Addr start, SizeT bytes)
{
    forget_mappings();
    on_other_code(start, bytes, False);
    if (jm_symbol_unmapped(start, bytes)) {
        jm_stack_forget();
        jm_unwind_forget();
        jm_query_unmapped(start, bytes);
    }
    jm_copies_ended(start, bytes);
    jm_mappings_unmapped(start, bytes);
}

// ---- threads, fork, exec -------------------------------------------------------------------------------------

// A host may end a killed program like one that exits, and give no status. So remember the exit status; a
// signal's number comes later, if at all (event_killed).
static Bool has_called_exit;
static UInt exit_status;

static UInt n_threads;

void event_thread_created(ThreadId child)
{
    n_threads++;
    if (jm_options.threads)
        jm_thread_is_created(child);
}

void event_thread_began(ThreadId tid)
{
    jm_mappings_thread_begins(tid);
    if (jm_options.threads)
        jm_thread_begins(tid);
}

void event_thread_leaves(ThreadId tid)
{
    if (jm_options.threads)
        jm_thread_leaves(tid);
}

void event_thread_ended(ThreadId tid)
{
    n_threads--;
    jm_per_thread_end(tid, has_called_exit || n_threads == 0 ? PROGRAM_ENDED : THREAD_EXITED);
}

static Bool is_forked;

void event_before_fork(void)
{
    jm_snapshot_before_fork();
    jm_trace_before_fork();
    jm_processes_before_fork();
}

void event_after_fork_in_child(ThreadId tid)
{
    n_threads = 1;
    jm_per_thread_after_fork_in_child(tid);
    if (jm_options.threads)
        jm_thread_begins(tid);
    jm_exhaustion_after_fork_in_child();
    jm_trace_after_fork_in_child();
    jm_snapshot_after_fork_in_child();
    jm_device_blocks_after_fork_in_child();
    jm_driver_after_fork_in_child(tid);
    is_forked = True;
}

void event_before_syscall(ThreadId tid, UInt number, const UWord *args)
{
    jm_driver_before_syscall(tid, number, args);
    if (number == __NR_prctl && args[0] == PR_SET_TSC)
        jm_clock_may_count = False;
    // Nothing of the program remains after exec.
    if (number == __NR_execve || number == __NR_execveat) {
        jm_snapshot_before_exec();
    } else if (number == __NR_exit_group || (number == __NR_exit && n_threads == 1)) {
        has_called_exit = True;
        exit_status = args[0] & 0xff;
    } else {
        if (number == __NR_munmap)
            jm_pages_before_unmap(args[0], args[1]);
        jm_snapshot_before_syscall(number, args);
    }
}

void event_after_syscall(ThreadId tid, UInt number, const UWord *args, Long result)
{
    jm_exhaustion_after_syscall(tid, number, args, result);
    jm_driver_after_syscall(tid, number, args, result);
    jm_snapshot_look();
}

void event_tick(ULong n)
{
    jm_snapshot_tick(n);
}

// ---- the run's life ------------------------------------------------------------------------------------------

// Additions to snapshots besides the ledger, in this order.
static const SnapshotSource snapshot_sources[] = {
    {.before = jm_torch_observe_roles_in_passing, .reads_program = True},
    {.before = jm_thread_hear_names, .reads_program = True},
    {jm_copies_verify, jm_copies_write, NULL, jm_copies_after_fork_in_child, True},
    {.before = jm_looked_at_let_go}, // before RSS is sampled
    {jm_pages_sample, jm_pages_write_process, jm_pages_write, jm_pages_after_fork_in_child, False},
    {.tell = jm_scope_write_sums},
    {.tell = jm_region_write_sums},
    {.tell = jm_heap_write_counters},
    {.tell = jm_cuda_write_counters},
    {.tell = jm_driver_write_counters},
    {.tell = jm_python_write_counters},
    {.tell = jm_tensor_write_counters},
    {.tell = jm_exhaustion_write_counters},
};

const RecorderHooks jm_hooks = {
    .object_found = on_object,
    .observe_roles = jm_torch_observe_roles,
    .oom_recorded = jm_device_tell_reserves,
    .library_loaded = jm_pages_measure_scope,
    .segment_ended = jm_tensor_segment_ended,
    .copied = jm_copies_copied,
    .registered = jm_copies_registered,
    .large_block = jm_copies_block,
    .range_ended = jm_copies_ended,
};

void event_started(void)
{
    jm_owner_init(jm_options.owners_file);
    jm_clock_init();
    jm_account_without_cache(host_environment("PYTORCH_NO_CUDA_MEMORY_CACHING") != NULL); // until PyTorch reads it
    jm_pages_init();
    jm_driver_init();
    jm_trace_open();
    jm_manifest_write();
    for (UInt rank = 1; rank <= jm_owner_count(); rank++) {
        OwnerId owner = jm_owner_by_rank(rank);
        jm_trace_group(jm_owner_name(owner), jm_owner_group(owner));
    }
    jm_snapshot_start(snapshot_sources, sizeof snapshot_sources / sizeof *snapshot_sources);
}

static void end_trace(SnapshotReason reason, UInt code)
{
    jm_trace_end(jm_clock_now(), jm_snapshot_reason_name(reason), code);
    jm_trace_close();
}

void event_killed(UInt signal)
{
    end_trace(SNAPSHOT_SIGNAL, signal);
}

// Prints a command to type in the start's directory, once for a process and its forks; that of a bundle by its path.
static void print_next_step(const HChar *trace)
{
    if (is_forked)
        return;
    const HChar *command = host_launcher();
    if (!jm_text_matches("*/jmassif", command) || jm_text_matches("/usr/*", command))
        command = "jmassif";
    const HChar *here = host_start_directory();
    SizeT length = strlen(here);
    if (strncmp(trace, here, length) == 0 && trace[length] == '/')
        trace += length + 1;
    const HChar *quote = strchr(trace, '\'') ? "\"" : strpbrk(trace, " ()&;$*?<>|#\"\\`") ? "'" : "";
    jm_note("jmassif: next: %s report %s%s%s\n", command, quote, trace, quote);
}

Bool event_ended(void)
{
    if (has_called_exit)
        jm_live_tensors_settle_all();
    jm_snapshot_take(has_called_exit ? SNAPSHOT_EXIT : SNAPSHOT_SIGNAL);
    return has_called_exit;
}

void event_stopped(void)
{
    jm_live_tensors_settle_all();
    jm_containers_write();
    jm_snapshot_take(SNAPSHOT_END);
    end_trace(SNAPSHOT_END, 0);
    if (jm_trace_path())
        print_next_step(jm_trace_path());
}

void event_closed(void)
{
    if (has_called_exit)
        end_trace(SNAPSHOT_EXIT, exit_status);
    if (has_called_exit && !has_preload)
        jm_note("jmassif: the program is linked statically: of its heap, only the pages have been seen\n");
    if (jm_trace_path())
        print_next_step(jm_trace_path());
}
