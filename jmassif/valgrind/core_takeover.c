// SPDX-License-Identifier: GPL-2.0-or-later
//
// What the core asks of unwinding. The core reads the unwind tables of all object files as they are mapped, which for
// large libraries takes seconds and hundreds of megabytes. It need not, if it never unwinds: so its reading of tables
// that ours finds in the program's memory is left out, and whoever in the core asks for a stack (what it prints when a
// program crashes) gets ours. The linker leads the core's calls here (--wrap). Where configure found that these
// functions cannot be taken over, the core does as ever.

#include "base/elf.h"
#include "base/options.h"
#include "stack/core_step.h"
#include "stack/unwind.h"

#if defined(JM_ASKS_CORE)

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

// A part of an object file, as the core has it.
typedef struct {
    void *image;
    ULong offset, bytes;
} Slice;

void __real_vgModuleLocal_read_callframe_info_dwarf3(DebugInfo *object, Slice table, Addr address, Bool is_eh_frame);
void __wrap_vgModuleLocal_read_callframe_info_dwarf3(DebugInfo *object, Slice table, Addr address, Bool is_eh_frame);

// The core's own frames, which are no client's memory, it needs the tables of for what it prints when it crashes
// itself.
void __wrap_vgModuleLocal_read_callframe_info_dwarf3(DebugInfo *object, Slice table, Addr address, Bool is_eh_frame)
{
    const Bool is_ours = is_eh_frame && jm_has_unwind_table(address);
    if (!is_ours)
        jm_core_knows_file(VG_(DebugInfo_get_text_avma)(object));
    if (jm_options.check_unwinding || !is_ours)
        __real_vgModuleLocal_read_callframe_info_dwarf3(object, table, address, is_eh_frame);
}

#endif
