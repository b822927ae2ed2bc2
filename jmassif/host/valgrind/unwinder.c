// SPDX-License-Identifier: GPL-2.0-or-later
//
// Registers, and one step of the core's unwinder by tables that only the core has read (.debug_frame, tables without
// an index). Calls of the core into our unwinder are in core_takeover.c.

#include "host/valgrind/unwinder.h"
#include "host/host.h"
#include "unwind/dwarf.h"

ThreadId host_thread(void)
{
    return VG_(get_running_tid)();
}

UInt host_n_threads(void)
{
    return VG_N_THREADS;
}

Addr host_ip(ThreadId tid)
{
    return VG_(get_IP)(tid);
}

Addr host_sp(ThreadId tid)
{
    return VG_(get_SP)(tid);
}

static UWord guest_word(ThreadId tid, SizeT offset)
{
    UWord value = 0;
    VG_(get_shadow_regs_area)(tid, (UChar *)&value, 0, offset, sizeof value);
    return value;
}

#if defined(VGA_amd64)

static const UShort guest_registers[JM_N_REGISTERS] = {
    offsetof(VexGuestArchState, guest_RAX), offsetof(VexGuestArchState, guest_RDX),
    offsetof(VexGuestArchState, guest_RCX), offsetof(VexGuestArchState, guest_RBX),
    offsetof(VexGuestArchState, guest_RSI), offsetof(VexGuestArchState, guest_RDI),
    offsetof(VexGuestArchState, guest_RBP), offsetof(VexGuestArchState, guest_RSP),
    offsetof(VexGuestArchState, guest_R8),  offsetof(VexGuestArchState, guest_R9),
    offsetof(VexGuestArchState, guest_R10), offsetof(VexGuestArchState, guest_R11),
    offsetof(VexGuestArchState, guest_R12), offsetof(VexGuestArchState, guest_R13),
    offsetof(VexGuestArchState, guest_R14), offsetof(VexGuestArchState, guest_R15),
    offsetof(VexGuestArchState, guest_RIP),
};

UWord host_register(ThreadId tid, UInt dwarf_number)
{
    return guest_word(tid, guest_registers[dwarf_number]);
}

void host_frame_registers(ThreadId tid, UWord *fp, UWord *link)
{
    *fp = guest_word(tid, offsetof(VexGuestArchState, guest_RBP));
    *link = 0;
}

UWord host_thread_pointer(ThreadId tid)
{
    return guest_word(tid, offsetof(VexGuestArchState, guest_FS_CONST));
}

#elif defined(VGA_arm64)

// x0 to x30, then the stack pointer.
UWord host_register(ThreadId tid, UInt dwarf_number)
{
    return guest_word(tid, offsetof(VexGuestArchState, guest_X0) + dwarf_number * sizeof(ULong));
}

// A call puts the return address into the link register; a leaf function leaves it there.
void host_frame_registers(ThreadId tid, UWord *fp, UWord *link)
{
    *fp = guest_word(tid, offsetof(VexGuestArchState, guest_X29));
    *link = guest_word(tid, offsetof(VexGuestArchState, guest_X30));
}

UWord host_thread_pointer(ThreadId tid)
{
    return guest_word(tid, offsetof(VexGuestArchState, guest_TPIDR_EL0));
}

#endif

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

Bool host_may_step(Addr ip)
{
    const NSegment *segment = VG_(am_find_nsegment)(ip);
    return segment && (segment->kind == SkFileC || segment->kind == SkFileV) && is_known(segment->dev, segment->ino);
}

// The linker's --wrap sends calls of VG_(use_CF_info) to our function; this name is the core's original.
extern Bool __real_vgPlain_use_CF_info(CoreRegisters *registers, Addr min_accessible, Addr max_accessible);

Bool host_step(HostFrameRegisters *frame, Addr stack_end)
{
    CoreRegisters core = {.ip = frame->ip, .sp = frame->sp, .fp = frame->fp};
#if defined(VGA_arm64)
    core.link = frame->link;
#endif
    if (!__real_vgPlain_use_CF_info(&core, frame->sp, stack_end - sizeof(Addr)))
        return False;
    *frame = (HostFrameRegisters){.ip = core.ip, .sp = core.sp, .fp = core.fp};
#if defined(VGA_arm64)
    frame->link = core.link;
#endif
    return True;
}
