// SPDX-License-Identifier: GPL-2.0-or-later
//
// Access to the core's unwinder, for one frame and for a whole stack. Our unwinder calls this file; the core's calls
// into ours are in host/valgrind/core_takeover.c.

#include "unwind/core_step.h"
#include "base/client_memory.h"

#if defined(JM_ASKS_CORE)

// Files for which the core has read an unwind table. After an overflow any file counts as known.
#define MAX_FILES 64
static struct {
    ULong dev, ino;
} files[MAX_FILES];
static UInt n_files;

static Bool is_known(ULong dev, ULong ino)
{
    for (UInt i = 0; i < n_files; i++)
        if (i == MAX_FILES || (files[i].dev == dev && files[i].ino == ino))
            return True;
    return False;
}

void jm_core_knows_file(Addr inside)
{
    const NSegment *segment = VG_(am_find_nsegment)(inside);
    if (!segment || is_known(segment->dev, segment->ino))
        return;
    if (n_files < MAX_FILES) {
        files[n_files].dev = segment->dev;
        files[n_files].ino = segment->ino;
    }
    n_files++;
}

Bool jm_core_may_know(Addr ip)
{
    const NSegment *segment = VG_(am_find_nsegment)(ip);
    return segment && (segment->kind == SkFileC || segment->kind == SkFileV) && is_known(segment->dev, segment->ino);
}

// Registers that the core follows from frame to frame. The function is in libcoregrind since 3.7 but in no public
// header, so configure probes for it.
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

// The linker's --wrap sends calls of VG_(get_StackTrace) to our function; this name is the core's original.
UInt __real_vgPlain_get_StackTrace(ThreadId tid, StackTrace ips, UInt n_ips, StackTrace sps, StackTrace fps,
                                   Word first_ip_delta);

UInt jm_core_stack(ThreadId tid, Addr *ips, Addr *sps, UInt max)
{
    return __real_vgPlain_get_StackTrace(tid, ips, max, sps, NULL, 0);
}

#else

UInt jm_core_stack(ThreadId tid, Addr *ips, Addr *sps, UInt max)
{
    return VG_(get_StackTrace)(tid, ips, max, sps, NULL, 0);
}

void jm_core_knows_file(Addr inside) {}

Bool jm_core_may_know(Addr ip)
{
    return False;
}

Bool jm_core_step(Registers *registers, Addr *ip)
{
    return False;
}

#endif
