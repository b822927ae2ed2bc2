// SPDX-License-Identifier: GPL-2.0-or-later
//
// Stacks for the core from the recorder's unwinder. The core reads the unwind tables of all object files as they are
// mapped, which takes seconds and hundreds of megabytes for large libraries. It needs them only to unwind: so it does
// not read tables that our unwinder finds in the program's memory, and stacks that the core prints when a program
// crashes are ours. The linker leads the core's calls here (--wrap). If configure found that these functions cannot be
// wrapped, the core works as usual.

#include "symbols/elf.h"
#include "base/options.h"
#include "host/valgrind/unwinder.h"
#include "unwind/unwind.h"

#if defined(TAKES_OVER_CORE_UNWINDER)

__typeof__(VG_(get_StackTrace)) __wrap_vgPlain_get_StackTrace;
__typeof__(VG_(get_and_pp_StackTrace)) __wrap_vgPlain_get_and_pp_StackTrace;

UInt __wrap_vgPlain_get_StackTrace(ThreadId tid, StackTrace ips, UInt n_ips, StackTrace sps, StackTrace fps,
                                   Word first_ip_delta)
{
    return jm_unwind_any(tid, ips, sps, fps, n_ips, first_ip_delta);
}

void __wrap_vgPlain_get_and_pp_StackTrace(ThreadId tid, UInt n_ips)
{
    Addr ips[n_ips];
    UInt n = jm_unwind_any(tid, ips, NULL, NULL, n_ips, 0);
    VG_(pp_StackTrace)(VG_(current_DiEpoch)(), ips, n);
}

// Part of an object file, with the layout of the core's DiSlice.
typedef struct {
    void *image;
    ULong offset, bytes;
} Slice;

void __real_vgModuleLocal_read_callframe_info_dwarf3(DebugInfo *object, Slice table, Addr address, Bool is_eh_frame);
void __wrap_vgModuleLocal_read_callframe_info_dwarf3(DebugInfo *object, Slice table, Addr address, Bool is_eh_frame);

// The core needs the tables of its own file for the stack it prints when it crashes itself: its frames are not in
// client memory.
void __wrap_vgModuleLocal_read_callframe_info_dwarf3(DebugInfo *object, Slice table, Addr address, Bool is_eh_frame)
{
    const Bool is_ours = is_eh_frame && jm_has_unwind_table(address);
    if (!is_ours)
        jm_core_knows_file(VG_(DebugInfo_get_text_avma)(object));
    if (jm_options.check_unwinding || !is_ours)
        __real_vgModuleLocal_read_callframe_info_dwarf3(object, table, address, is_eh_frame);
}

#endif
