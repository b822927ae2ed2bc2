// SPDX-License-Identifier: GPL-2.0-or-later
//
// jmassif, a heap and CUDA memory profiler. This file registers the tool with Valgrind's core and wires the folders;
// only it knows them all. Data flows one way:
//
//     heap/, cuda/, driver/, pages/   allocations              (sources)
//     stack/                          call stacks and owners   (attribution)
//     ledger/                         balances, totals, peaks
//     snapshot/, trace/               what is written, when    → jmassif.out.<pid>, read by the reporter

#include "base/client_memory.h"
#include "base/clock.h"
#include "base/compat.h"
#include "symbols/elf.h"
#include "symbols/file_pages.h"
#include "base/options.h"
#include "base/per_thread.h"
#include "base/stats.h"
#include "base/text.h"
#include "trace/trace.h"
#include "attribution/owner.h"
#include "unwind/code.h"
#include "python/python.h"
#include "calls/scope.h"
#include "symbols/source.h"
#include "stack/stack.h"
#include "symbols/symbol.h"
#include "stack/thread.h"
#include "unwind/unwind.h"
#include "ledger/account.h"
#include "tensors/pending.h"
#include "events/exhaustion.h"
#include "machine/manifest.h"
#include "events/region.h"
#include "events/snapshot.h"
#include "heap/blocks.h"
#include "heap/heap.h"
#include "heap/slab.h"
#include "driver/driver.h"
#include "cuda/cuda.h"
#include "cuda/device_blocks.h"
#include "cuda/query.h"
#include "cuda/tensor.h"
#include "tensors/roles.h"
#include "pages/mappings.h"
#include "pages/pages.h"
#include "pages/processes.h"
#include "pages/stack_memory.h"
#include "requests/client.h"
#include "requests/request.h"
#include "host/valgrind/code_cache.h"
#include "host/valgrind/debug_info.h"
#include "host/valgrind/fma.h"
#include "host/valgrind/freeres.h"
#include "host/valgrind/guest_state.h"
#include "host/valgrind/indirect.h"
#include "host/valgrind/killed.h"
#include "host/valgrind/matching.h"
#include "host/valgrind/places.h"
#include "host/valgrind/symbol_names.h"
#include "host/valgrind/translation.h"

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

static void on_mapping(Addr start, SizeT bytes, Bool rr, Bool ww, Bool xx, ULong di_handle)
{
    if (!rr || xx)
        forget_mappings(); // the mapping may replace readable memory, or another object's
    else
        jm_code_forget();
    on_other_code(start, bytes, xx);
    if (xx)
        jm_symbol_object_mapped(start, bytes);
    if (di_handle)
        jm_symbol_tell_objects(False);
    jm_mappings_mapped(start, bytes);
}

static Bool has_preload; // the preload library, which intercepts malloc and CUDA

static void on_object(const HChar *soname, const HChar *path, Addr code)
{
    has_preload |= jm_symbol_is_preload_library(path);
    jm_manifest_object(soname, path);
    jm_python_object(path, code);
}

static void on_protect(Addr start, SizeT bytes, Bool rr, Bool ww, Bool xx)
{
    forget_mappings();
    on_other_code(start, bytes, xx);
}

static void on_unmap(Addr start, SizeT bytes)
{
    forget_mappings();
    on_other_code(start, bytes, False);
    if (jm_symbol_unmapped(start, bytes)) {
        jm_stack_forget();
        jm_unwind_forget();
        jm_query_unmapped(start, bytes);
    }
    jm_mappings_unmapped(start, bytes);
}

// ---- threads, fork, exec -------------------------------------------------------------------------------------

// The core ends a killed program like one that exits, and gives the tool no status. So remember the exit status; a
// signal's number comes later, if at all (host/valgrind/killed.h).
static Bool has_called_exit;
static UInt exit_status;

static UInt n_threads;

static void on_thread_create(ThreadId tid, ThreadId child)
{
    n_threads++;
    if (jm_options.threads)
        jm_thread_is_created(child);
}

static void on_thread_begin(ThreadId tid)
{
    jm_mappings_thread_begins(tid);
    if (jm_options.threads)
        jm_thread_begins(tid);
}

static void on_thread_exit(ThreadId tid)
{
    n_threads--;
    jm_per_thread_end(tid, has_called_exit || n_threads == 0 ? PROGRAM_ENDED : THREAD_EXITED);
}

static void before_fork(ThreadId tid)
{
    jm_snapshot_before_fork();
    jm_trace_before_fork();
    jm_processes_before_fork();
}

static void after_fork_in_child(ThreadId tid)
{
    n_threads = 1;
    jm_code_cache_after_fork_in_child();
    jm_per_thread_after_fork_in_child(tid);
    if (jm_options.threads)
        jm_thread_after_fork_in_child(tid);
    jm_exhaustion_after_fork_in_child();
    jm_trace_after_fork_in_child();
    jm_snapshot_after_fork_in_child();
    jm_device_blocks_after_fork_in_child();
    jm_driver_after_fork_in_child(tid);
}

static void on_syscall(ThreadId tid, UInt number, UWord *args, UInt n_args)
{
    jm_clock_before_syscall(number, args);
    jm_driver_before_syscall(tid, number, args);
    // Nothing of the program remains after exec.
    if (number == __NR_execve || number == __NR_execveat) {
        jm_snapshot_before_exec();
        jm_code_cache_before_exec();
    } else if (number == __NR_exit_group || (number == __NR_exit && n_threads == 1)) {
        has_called_exit = True;
        exit_status = args[0] & 0xff;
    } else {
        if (number == __NR_munmap)
            jm_pages_before_unmap(args[0], args[1]);
        jm_snapshot_before_syscall(number, args);
    }
}

static void after_syscall(ThreadId tid, UInt number, UWord *args, UInt n_args, SysRes res)
{
    jm_exhaustion_after_syscall(tid, number, args, res);
    jm_driver_after_syscall(tid, number, args, res);
    jm_snapshot_after_syscall();
    if (jm_options.threads)
        jm_thread_after_syscall(tid, number, args, res);
    jm_places_after_syscall(number, args, res);
}

static void on_client_code(ThreadId tid, ULong blocks_dispatched)
{
    jm_snapshot_tick(blocks_dispatched);
}

// ---- the tool's life -----------------------------------------------------------------------------------------

static Bool has_fma;

static IRSB *instrument(VgCallbackClosure *closure, IRSB *in, const VexGuestLayout *layout,
                        const VexGuestExtents *extents, const VexArchInfo *archinfo_host, IRType guest_word,
                        IRType host_word)
{
    jm_code_cache_instrumenting(in);
    IRSB *out = has_fma ? jm_fma_in_hardware(in, archinfo_host) : in;
    if (jm_options.time_unit == TIME_INSTRUCTIONS)
        out = jm_clock_count_instructions(out);
    out = jm_request_answer_at_once(out);
    jm_translation_instrumented(in, out);
    jm_indirect_foresee(out);
    return out;
}

// Drop file pages that only the recorder touched, before RSS is sampled.
static void let_go(Bool in_full)
{
    (void)in_full;
    jm_looked_at_let_go();
    jm_symbol_names_let_go();
}

// Additions to snapshots besides the ledger, in this order.
static const SnapshotSource snapshot_sources[] = {
    {.before = jm_torch_hear_roles_in_passing},
    {.before = jm_thread_hear_names},
    {.before = let_go},
    {jm_pages_sample, jm_pages_write_process, jm_pages_write, jm_pages_after_fork_in_child},
    {.tell = jm_scope_write_sums},
    {.tell = jm_region_write_sums},
    {.tell = jm_heap_write_counters},
    {.tell = jm_cuda_write_counters},
    {.tell = jm_driver_write_counters},
    {.tell = jm_python_write_counters},
    {.tell = jm_tensor_write_counters},
    {.tell = jm_unwind_write_counters},
    {.tell = jm_exhaustion_write_counters},
};

static void post_clo_init(void)
{
    jm_options_finish();
    if (jm_options.low_footprint) {
        jm_translation_keep_little();
        jm_debug_info_keep_little();
    }
    jm_freeres_init();
    jm_client_on_exit(jm_freeres_allow);
    jm_owner_init(jm_options.owners_file);
    jm_symbol_on_object(on_object);
    jm_clock_init();
    has_fma = jm_fma_is_available();
    jm_account_without_cache(VG_(getenv)("PYTORCH_NO_CUDA_MEMORY_CACHING") != NULL); // until PyTorch reads it
    jm_code_cache_init();
    jm_cuda_on_library_loaded(jm_pages_measure_scope);
    jm_exhaustion_on_event(jm_device_tell_reserves);
    jm_pending_on_settled(jm_torch_hear_roles);
    jm_pages_init();
    jm_driver_init();
    jm_trace_open();
    jm_manifest_write();
    for (UInt rank = 1; rank <= jm_owner_count(); rank++) {
        OwnerId owner = jm_owner_by_rank(rank);
        jm_trace_group(jm_owner_name(owner), jm_owner_group(owner));
    }
    if (jm_options.stacks)
        jm_stack_memory_init();
    jm_snapshot_start(snapshot_sources, sizeof snapshot_sources / sizeof *snapshot_sources);
}

static void print_stats(void)
{
    static const TellStats modules[] = {jm_blocks_stats,  jm_slab_stats,       jm_heap_stats,
                                        jm_stack_stats,   jm_unwind_stats,     jm_symbol_stats,
                                        jm_account_stats, jm_ledger_stats,     jm_python_stats,
                                        jm_owner_stats,   jm_mappings_stats,   jm_driver_stats,
                                        jm_scope_stats,   jm_region_stats,     jm_device_blocks_stats,
                                        jm_tensor_stats,  jm_exhaustion_stats, jm_pending_stats,
                                        jm_torch_stats,   jm_trace_stats,      jm_trace_file_stats,
                                        jm_source_stats,  jm_code_cache_stats, jm_places_stats,
                                        jm_guest_stats,   jm_matching_stats,   NULL};
    jm_stats_print(modules);
}

static void end_trace(SnapshotReason reason, UInt code)
{
    jm_trace_end(jm_clock_now(), jm_snapshot_reason_name(reason), code);
    jm_trace_close();
}

static void on_killed(UInt signal)
{
    end_trace(SNAPSHOT_SIGNAL, signal);
}

// Prints a command to type in the directory of the start. A bundle's command is typed by its path.
static void print_next_step(const HChar *trace)
{
    const HChar *command = VG_(name_of_launcher) ? VG_(name_of_launcher) : "";
    if (!jm_text_matches("*/jmassif", command) || jm_text_matches("/usr/*", command))
        command = "jmassif";
    const HChar *here = VG_(get_startup_wd)();
    SizeT length = VG_(strlen)(here);
    if (VG_(strncmp)(trace, here, length) == 0 && trace[length] == '/')
        trace += length + 1;
    VG_(umsg)("jmassif: next: %s report %s\n", command, trace);
}

static void fini(Int exit_code)
{
    SnapshotReason reason = has_called_exit ? SNAPSHOT_EXIT : SNAPSHOT_SIGNAL;
    if (has_called_exit)
        jm_pending_settle_all();
    jm_snapshot_take(reason);
    if (VG_(clo_stats))
        print_stats();
    if (has_called_exit || !jm_on_killed(on_killed))
        end_trace(reason, exit_status);
    jm_code_cache_end();
    jm_places_end();
    if (VG_(clo_verbosity) > 0 && has_called_exit && !has_preload)
        VG_(umsg)("jmassif: the program is linked statically: of its heap, only the pages have been seen\n");
    if (VG_(clo_verbosity) > 0 && jm_trace_path())
        print_next_step(jm_trace_path());
}

static void pre_clo_init(void)
{
    VG_(details_name)("jmassif");
    VG_(details_version)(PACKAGE_VERSION);
    VG_(details_description)("a heap and CUDA memory profiler");
    VG_(details_copyright_author)("Copyright (C) 2026, and GNU GPL'd, by the jmassif authors.");
    VG_(details_bug_reports_to)("the jmassif authors");
    jm_translation_init();
    jm_debug_info_init();

    VG_(basic_tool_funcs)(post_clo_init, instrument, fini);
    jm_options_init();
    VG_(needs_command_line_options)(jm_options_process, jm_options_print_usage, jm_options_print_debug_usage);
    VG_(needs_client_requests)(jm_client_handle_request);
    VG_(needs_syscall_wrapper)(on_syscall, after_syscall);
    VG_(needs_print_stats)(print_stats);
    VG_(needs_libc_freeres)();
    VG_(needs_cxx_freeres)();
    jm_heap_init();
    VG_(track_new_mem_startup)(on_mapping);
    VG_(track_new_mem_mmap)(on_mapping);
    VG_(track_die_mem_munmap)(on_unmap);
    VG_(track_change_mem_mprotect)(on_protect);
    VG_(track_pre_thread_ll_create)(on_thread_create);
    VG_(track_pre_thread_first_insn)(on_thread_begin);
    VG_(track_pre_thread_ll_exit)(on_thread_exit);
    VG_(track_start_client_code)(on_client_code);
    VG_(atfork)(before_fork, NULL, after_fork_in_child);
}

VG_DETERMINE_INTERFACE_VERSION(pre_clo_init)
