// SPDX-License-Identifier: GPL-2.0-or-later
//
// Registers, and the core's unwinder beside ours.
//
// Unwind tables are read once, by the recorder. The core reads those of all object files as they are mapped, which
// takes seconds and hundreds of megabytes for large libraries, and needs them only for the stacks that it prints, such
// as a crash's. So it does not read tables that our unwinder finds in the program's memory, and steps by ours. The
// linker leads the core's calls here (--wrap). It still reads tables in other forms (.debug_frame, tables without an
// index), and steps by these for us.

#include "base/array.h"
#include "host/host.h"
#include "host/valgrind/debug_info.h"
#include "symbols/elf.h"
#include "unwind/dwarf.h"
#include "unwind/step.h"

ThreadId host_thread(void)
{
    return VG_(get_running_tid)();
}

Bool host_others_run(void)
{
    return False;
}

UWord host_call(Addr function)
{
    return 0;
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

HostFrameRegisters host_frame(ThreadId tid)
{
    return (HostFrameRegisters){
        .ip = host_ip(tid), .sp = host_sp(tid), .fp = guest_word(tid, offsetof(VexGuestArchState, guest_RBP))};
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
HostFrameRegisters host_frame(ThreadId tid)
{
    return (HostFrameRegisters){.ip = host_ip(tid),
                                .sp = host_sp(tid),
                                .fp = guest_word(tid, offsetof(VexGuestArchState, guest_X29)),
                                .link = guest_word(tid, offsetof(VexGuestArchState, guest_X30))};
}

UWord host_thread_pointer(ThreadId tid)
{
    return guest_word(tid, offsetof(VexGuestArchState, guest_TPIDR_EL0));
}

#endif

// Registers that the core follows from frame to frame, with the layout of its D3UnwindRegs.
typedef struct {
    Addr ip, sp;
#if defined(VGA_arm64)
    Addr link;
#endif
    Addr fp;
} CoreRegisters;

Bool __real_vgPlain_use_CF_info(CoreRegisters *registers, Addr min_accessible, Addr max_accessible);

// Files for which the core has read an unwind table.
typedef struct {
    ULong dev, ino;
} File;
static Array files = JM_ARRAY("jm.unwinder", File);

Bool host_may_step(Addr ip)
{
    const NSegment *segment = jm_array_n(&files) ? VG_(am_find_nsegment)(ip) : NULL;
    return segment && (segment->kind == SkFileC || segment->kind == SkFileV) &&
           jm_array_find(&files, &(File){segment->dev, segment->ino}, sizeof(File));
}

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

// The core follows three registers from frame to frame, and asks for each step alone. The cursor has them all as long
// as the core continues where the last step led.
static Cursor cursor;

Bool __wrap_vgPlain_use_CF_info(CoreRegisters *registers, Addr min_accessible, Addr max_accessible)
{
    if (host_may_step(registers->ip) && __real_vgPlain_use_CF_info(registers, min_accessible, max_accessible))
        return True;
    if (cursor.ip != registers->ip || cursor.registers.value[JM_REG_SP] != registers->sp) {
        cursor = (Cursor){.ip = registers->ip, .is_innermost = True, .is_partial = True};
        jm_register_set(&cursor.registers, JM_REG_SP, registers->sp);
        jm_register_set(&cursor.registers, JM_REG_FP, registers->fp);
#if defined(VGA_arm64)
        jm_register_set(&cursor.registers, JM_REG_RA, registers->link);
#endif
    }
    const Step step = jm_unwind_step(&cursor);
    if (step == LACKS_REGISTER)
        return False;
    registers->ip = step == AT_CALLER ? cursor.ip + 1 : 0; // the core subtracts one, and stops at 0
    registers->sp = cursor.registers.value[JM_REG_SP];
    registers->fp = cursor.registers.value[JM_REG_FP];
#if defined(VGA_arm64)
    registers->link = cursor.registers.value[JM_REG_RA];
#endif
    return True;
}

// Part of an object file, with the layout of the core's DiSlice.
typedef struct {
    void *image;
    ULong offset, bytes;
} Slice;

void __real_vgModuleLocal_read_callframe_info_dwarf3(DebugInfo *object, Slice table, Addr address, Bool is_eh_frame);

// The core needs the tables of its own file for the stack it prints when it crashes itself: its frames are not in
// client memory.
void __wrap_vgModuleLocal_read_callframe_info_dwarf3(DebugInfo *object, Slice table, Addr address, Bool is_eh_frame)
{
    jm_debug_info_reading(object);
    if (is_eh_frame && jm_has_unwind_table(address))
        return;
    const NSegment *segment = VG_(am_find_nsegment)(VG_(DebugInfo_get_text_avma)(object));
    if (segment)
        jm_array_find_or_add(&files, &(File){segment->dev, segment->ino}, sizeof(File));
    __real_vgModuleLocal_read_callframe_info_dwarf3(object, table, address, is_eh_frame);
}
