// SPDX-License-Identifier: GPL-2.0-or-later
//
// An object file as it is mapped, of which every byte may be wrong: its symbols and functions are looked up, rows of
// its unwind table are made, their expressions evaluated, and a stack that leads into it is walked.

#include "base/client_memory.h"
#include "host/host.h"
#include "symbols/elf.h"
#include "shim.h"
#include "symbols/file_pages.h"
#include "unwind/step.h"
#include "unwind/table.h"

void jm_looked_at(Addr start, Addr end) {}

Bool host_may_step(Addr ip)
{
    return False;
}

Bool host_step(HostFrameRegisters *frame, Addr stack_end)
{
    return False;
}

enum { N_PLACES = 48, MOST_STEPS = 64, WORDS = 512 };

static unsigned char *image, *stack;
static size_t image_bytes;

static Addr some_address(void)
{
    uint64_t n = shim_number();
    switch (n % 8) {
    case 0:
        return (Addr)n;
    case 1:
    case 2:
        return (Addr)stack + n / 8 % (WORDS * 8);
    case 3:
        return (Addr)stack + n / 8 % WORDS * 8;
    default:
        return (Addr)image + n / 8 % image_bytes;
    }
}

static void walk(Addr ip)
{
    Cursor c = {.ip = ip, .is_innermost = True, .is_call = shim_number() & 1};
    for (UInt i = 0; i < JM_N_REGISTERS; i++)
        jm_register_set(&c.registers, i, some_address());
    jm_register_set(&c.registers, JM_REG_SP, (Addr)stack + shim_number() % WORDS / 4 * 8);
    for (UInt n = 0; n < MOST_STEPS && jm_unwind_step(&c) == AT_CALLER; n++)
        c.is_innermost = False;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    if (n < 64 || n > SEGMENT_BYTES)
        return 0;
    static uint64_t words[WORDS];
    shim_seed(bytes, n);
    image = shim_segment(bytes, n, 1);
    image_bytes = n;
    stack = shim_segment((uint8_t *)words, sizeof words, 0);
    for (UInt i = 0; i < WORDS; i++)
        ((uint64_t *)stack)[i] = some_address();
    jm_elf_forget();
    jm_code_forget();
    jm_forget_readable();
    jm_unwind_rules_forget();
    jm_find_dynamic_symbol((Addr)image + n / 2, "thrower");
    jm_find_dynamic_symbol((Addr)image, "nothing");
    for (UInt i = 0; i < N_PLACES; i++) {
        // Functions of the table, as mutations have left it, and any other place.
        Addr ip = some_address();
        Addr start = jm_find_unwind_entry(ip, UNWIND_FUNCTION);
        UnwindRow row;
        jm_unwind_row(start ? start + shim_number() % 32 : ip, &row);
        jm_unwind_rule(start ? start : ip);
        if (i % 4 == 0)
            walk(start ? start + shim_number() % 64 : ip);
    }
    shim_forget();
    return 0;
}
