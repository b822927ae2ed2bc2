// SPDX-License-Identifier: GPL-2.0-or-later
//
// Unwind tables are read once, by the recorder. The core reads those of all object files as they are mapped, which
// takes seconds and hundreds of megabytes for large libraries, and needs them only for the stacks that it prints, such
// as a crash's. So it does not read tables that our unwinder finds in the program's memory, and steps by ours. The
// linker leads the core's calls here (--wrap).

#include "symbols/elf.h"
#include "host/host.h"
#include "host/valgrind/debug_info.h"
#include "host/valgrind/unwinder.h"
#include "unwind/step.h"

Bool __real_vgPlain_use_CF_info(CoreRegisters *registers, Addr min_accessible, Addr max_accessible);
Bool __wrap_vgPlain_use_CF_info(CoreRegisters *registers, Addr min_accessible, Addr max_accessible);

// The core follows three registers from frame to frame, and asks for each step alone. The cursor has them all as long
// as the core continues where the last step led.
static Cursor cursor;

static void begin(const CoreRegisters *from)
{
    cursor = (Cursor){.ip = from->ip, .is_innermost = True, .is_partial = True};
    jm_register_set(&cursor.registers, JM_REG_SP, from->sp);
    jm_register_set(&cursor.registers, JM_REG_FP, from->fp);
#if defined(VGA_arm64)
    jm_register_set(&cursor.registers, JM_REG_RA, from->link);
#endif
}

Bool __wrap_vgPlain_use_CF_info(CoreRegisters *registers, Addr min_accessible, Addr max_accessible)
{
    if (host_may_step(registers->ip) && __real_vgPlain_use_CF_info(registers, min_accessible, max_accessible))
        return True;
    if (cursor.ip != registers->ip || cursor.registers.value[JM_REG_SP] != registers->sp)
        begin(registers);
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
void __wrap_vgModuleLocal_read_callframe_info_dwarf3(DebugInfo *object, Slice table, Addr address, Bool is_eh_frame);

// The core needs the tables of its own file for the stack it prints when it crashes itself: its frames are not in
// client memory.
void __wrap_vgModuleLocal_read_callframe_info_dwarf3(DebugInfo *object, Slice table, Addr address, Bool is_eh_frame)
{
    jm_debug_info_reading(object);
    if (is_eh_frame && jm_has_unwind_table(address))
        return;
    jm_core_knows_file(VG_(DebugInfo_get_text_avma)(object));
    __real_vgModuleLocal_read_callframe_info_dwarf3(object, table, address, is_eh_frame);
}
