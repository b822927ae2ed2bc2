// SPDX-License-Identifier: GPL-2.0-or-later

#include "valgrind/core_unwinder.h"
#include "base/client_memory.h"
#include "base/options.h"
#include "stack/unwind.h"

#if defined(JM_ASKS_CORE)

// What the core follows of a frame. In libcoregrind since 3.7, and not in a public header; configure looks whether the
// function is there.
typedef struct {
    Addr ip, sp;
#if defined(VGA_arm64)
    Addr link;
#endif
    Addr fp;
} CoreRegisters;

extern Bool VG_(use_CF_info)(CoreRegisters *registers, Addr min_accessible, Addr max_accessible);

Bool jm_core_step(Registers *registers, Addr *ip)
{
    Addr sp = registers->value[JM_REG_SP];
    Addr end = jm_readable_end(sp);
    if (!end || !jm_register_is_known(registers, JM_REG_FP))
        return False;
    CoreRegisters core = {.ip = *ip, .sp = sp, .fp = registers->value[JM_REG_FP]};
#if defined(VGA_arm64)
    core.link = jm_register_is_known(registers, JM_REG_RA) ? registers->value[JM_REG_RA] : 0;
#endif
    if (!VG_(use_CF_info)(&core, sp, end - sizeof(Addr)))
        return False;
    *ip = core.ip;
    registers->known = 0;
    jm_register_set(registers, JM_REG_SP, core.sp);
    jm_register_set(registers, JM_REG_FP, core.fp);
#if defined(VGA_arm64)
    jm_register_set(registers, JM_REG_RA, core.link);
#endif
    return True;
}

// ---- what the linker leads here (--wrap) -----------------------------------------------------------------------

UInt __real_vgPlain_get_StackTrace(ThreadId tid, StackTrace ips, UInt n_ips, StackTrace sps, StackTrace fps,
                                   Word first_ip_delta);
__typeof__(VG_(get_StackTrace)) __wrap_vgPlain_get_StackTrace;
__typeof__(VG_(get_and_pp_StackTrace)) __wrap_vgPlain_get_and_pp_StackTrace;

UInt jm_core_stack(ThreadId tid, Addr *ips, Addr *sps, UInt max)
{
    return __real_vgPlain_get_StackTrace(tid, ips, max, sps, NULL, 0);
}

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
    if (jm_options.check_unwinding || !is_eh_frame || !jm_has_unwind_table(address))
        __real_vgModuleLocal_read_callframe_info_dwarf3(object, table, address, is_eh_frame);
}

#else

UInt jm_core_stack(ThreadId tid, Addr *ips, Addr *sps, UInt max)
{
    return VG_(get_StackTrace)(tid, ips, max, sps, NULL, 0);
}

Bool jm_core_step(Registers *registers, Addr *ip)
{
    return False;
}

#endif
