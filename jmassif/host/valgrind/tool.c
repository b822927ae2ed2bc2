// SPDX-License-Identifier: GPL-2.0-or-later
//
// Registers the tool with Valgrind's core, and turns its callbacks into the events of host/events.h.

#include "base/kernel.h"
#include "base/libc.h"
#include "base/options.h"
#include "base/text.h"
#include "heap/heap.h"
#include "host/events.h"
#include "host/host.h"
#include "host/valgrind/code_cache.h"
#include "host/valgrind/code_file.h"
#include "host/valgrind/compat.h"
#include "host/valgrind/debug_info.h"
#include "host/valgrind/malloc.h"
#include "host/valgrind/translation.h"
#include "pages/mappings.h"
#include "preload/protocol.h"
#include "requests/client.h"

// ---- mappings and threads ------------------------------------------------------------------------------------

static void on_mapping(Addr start, SizeT bytes, Bool rr, Bool ww, Bool xx, ULong di_handle)
{
    event_mapped(start, bytes, rr, xx, di_handle != 0);
}

static void on_protect(Addr start, SizeT bytes, Bool rr, Bool ww, Bool xx)
{
    event_protected(start, bytes, xx);
}

static void on_thread_create(ThreadId tid, ThreadId child)
{
    event_thread_created(child);
}

static void on_thread_begin(ThreadId tid)
{
    static Bool has_begun;
    if (!has_begun)
        jm_debug_info_read_loader(VG_(get_IP)(tid));
    has_begun = True;
    event_thread_began(tid);
}

static void before_fork(ThreadId tid)
{
    event_before_fork();
}

static void after_fork_in_child(ThreadId tid)
{
    jm_code_file_after_fork_in_child();
    event_after_fork_in_child(tid);
}

// ---- system calls, requests, translation ---------------------------------------------------------------------

static void before_syscall(ThreadId tid, UInt number, UWord *args, UInt n_args)
{
    event_before_syscall(tid, number, args);
    if (number == __NR_execve || number == __NR_execveat)
        jm_code_file_flush();
}

static void after_syscall(ThreadId tid, UInt number, UWord *args, UInt n_args, SysRes res)
{
    event_after_syscall(tid, number, args, sr_isError(res) ? -(Long)sr_Err(res) : (Long)sr_Res(res));
    jm_places_after_syscall(number, args, res);
}

static void on_client_code(ThreadId tid, ULong blocks_dispatched)
{
    event_tick(blocks_dispatched);
}

Bool jm_tool_request(ThreadId tid, UWord *args, UWord *result)
{
    *result = 0;
    switch (args[0]) {
    case VG_USERREQ__MALLOCLIKE_BLOCK:
        jm_heap_malloclike(tid, args[1], args[2]);
        return True;
    case VG_USERREQ__RESIZEINPLACE_BLOCK:
        jm_heap_resize_in_place(tid, args[1], args[3]);
        return True;
    case VG_USERREQ__FREELIKE_BLOCK:
        jm_heap_freelike(tid, args[1]);
        return True;
    case JM_REQ_CALLOC:
        *result = (UWord)jm_malloc_calloc(tid, args[1], args[2]);
        return True;
    case JM_REQ_PVALLOC:
        *result = (UWord)jm_malloc_pvalloc(tid, args[1]);
        return True;
    case JM_REQ_NEW:
        *result = (UWord)jm_malloc_new(tid, args[1], args[2]);
        return True;
    case VG_USERREQ__GDB_MONITOR_COMMAND:
        switch (VG_(keyword_id)("help snapshot", (HChar *)args[1], kwd_report_duplicated_matches)) {
        case -1:
            return False;
        case -2: // ambiguous: the core has said so
            break;
        default:
            jm_client_monitor((HChar *)args[1]);
        }
        *result = 1;
        return True;
    default:
        return jm_client_handle_request(tid, args, result);
    }
}

static Bool has_fma;

static IRSB *instrument(VgCallbackClosure *closure, IRSB *in, const VexGuestLayout *layout,
                        const VexGuestExtents *extents, const VexArchInfo *archinfo_host, IRType guest_word,
                        IRType host_word)
{
    jm_code_cache_instrumenting(in);
    IRSB *out = has_fma ? jm_fma_in_hardware(in, archinfo_host) : in;
    if (jm_options.time_unit == TIME_INSTRUCTIONS)
        out = jm_count_instructions(out);
    out = jm_request_answer_at_once(out);
    jm_indirect_foresee(out);
    return out;
}

// ---- the tool's life -----------------------------------------------------------------------------------------

static Bool has_started;

static Bool process_option(const HChar *arg)
{
    // The core asks again while the program runs (vgdb v.clo).
    return !has_started && (jm_options_process(arg) || VG_(replacement_malloc_process_cmd_line_option)(arg));
}

static void print_debug_usage(void)
{
    VG_(printf)("    (none)\n");
}

// At the program's end the core lets libraries free their internal memory, which keeps it out of lists of leaks. The C
// library first flushes its streams. After exit() they are empty, but a program that calls _exit() expects their
// content to be lost: streams of a forked child begin with its parent's buffered output, which would be written twice.
// So this waits for exit().
static Bool frees_libc, frees_cxx; // the user's choice

void host_exit_called(void)
{
    VG_(clo_run_libc_freeres) = frees_libc;
    VG_(clo_run_cxx_freeres) = frees_cxx;
}

static void post_clo_init(void)
{
    has_started = True;
    jm_options.show_below_main = VG_(clo_show_below_main);
    jm_options_finish();
    if (jm_options.low_footprint) {
        jm_translation_keep_little();
        jm_debug_info_keep_little();
    }
    // The core warns of unknown ioctls for the sake of definedness checks, which this tool does not make.
    if (jm_options.driver)
        VG_(clo_sim_hints) |= JM_LAX_IOCTLS;
    frees_libc = VG_(clo_run_libc_freeres);
    frees_cxx = VG_(clo_run_cxx_freeres);
    VG_(clo_run_libc_freeres) = VG_(clo_run_cxx_freeres) = False;
    has_fma = jm_fma_is_available();
    jm_code_cache_init();
    event_started();
}

// To a tool, death by a signal looks like an exit without a status. At the very end the core sends the fatal signal to
// its own process by this function (--wrap).
void __real_vgPlain_kill_self(Int signal);

static Bool has_called_exit;

void __wrap_vgPlain_kill_self(Int signal)
{
    if (!has_called_exit)
        event_killed(signal);
    __real_vgPlain_kill_self(signal);
}

static void fini(Int exit_code)
{
    has_called_exit = event_ended();
    event_closed();
    if (VG_(clo_stats))
        jm_code_file_stats();
    jm_code_cache_end();
}

void host_update_mappings(void) {}

// A recorded process runs the same executable, the tool.
Int host_recorded_by(Int pid)
{
    static HChar own[1024];
    static SSizeT n;
    HChar link[32], path[sizeof own];
    if (n <= 0)
        n = jm_read_link("/proc/self/exe", own, sizeof own);
    jm_format(link, sizeof link, "/proc/%d/exe", pid);
    return n > 0 && n == jm_read_link(link, path, sizeof path) && memcmp(path, own, n) == 0 ? pid : 0;
}

static void pre_clo_init(void)
{
    VG_(details_name)("jmassif");
    VG_(details_version)(PACKAGE_VERSION);
    VG_(details_description)("a heap and CUDA memory profiler");
    VG_(details_copyright_author)("Copyright (C) 2026, and GNU GPL'd, by the jmassif authors.");
    VG_(details_bug_reports_to)("the jmassif authors");
#if !defined(VGA_amd64)
    host_page_bytes = VKI_PAGE_SIZE;
#endif
    jm_translation_init();
    jm_debug_info_init();

    VG_(basic_tool_funcs)(post_clo_init, instrument, fini);
    jm_options_init();
    VG_(needs_command_line_options)(process_option, jm_options_print_usage, print_debug_usage);
    VG_(needs_client_requests)(jm_tool_request);
    VG_(needs_syscall_wrapper)(before_syscall, after_syscall);
    VG_(needs_print_stats)(jm_code_file_stats);
    VG_(needs_libc_freeres)();
    VG_(needs_cxx_freeres)();
    jm_malloc_init();
    VG_(track_new_mem_startup)(on_mapping);
    VG_(track_new_mem_mmap)(on_mapping);
    VG_(track_die_mem_munmap)(event_unmapped);
    VG_(track_change_mem_mprotect)(on_protect);
    VG_(track_new_mem_brk)(jm_mappings_brk_grown);
    VG_(track_die_mem_brk)(jm_mappings_unmapped);
    VG_(track_copy_mem_remap)(jm_mappings_moved);
    VG_(track_pre_thread_ll_create)(on_thread_create);
    VG_(track_pre_thread_first_insn)(on_thread_begin);
    VG_(track_pre_thread_ll_exit)(event_thread_ended);
    VG_(track_start_client_code)(on_client_code);
    VG_(atfork)(before_fork, NULL, after_fork_in_child);
}

VG_DETERMINE_INTERFACE_VERSION(pre_clo_init)
