// SPDX-License-Identifier: GPL-2.0-or-later
//
// Unwind tables contain DWARF numbers and expressions; this file decodes both (dwarf.h). The reader and the stack
// machine only record a failure, so single steps need no checks: callers check once at the end. Operations are DWARF's
// numbers (DWARF 5, section 7.7.1), with their names in comments.

#include "unwind/dwarf.h"
#include "base/client_memory.h"

ULong jm_dwarf_take(DwarfReader *r, UInt bytes)
{
    ULong value = 0;
    if (bytes > r->end - r->at) {
        r->failed = True;
        r->at = r->end;
        return 0;
    }
    for (UInt i = 0; i < bytes; i++)
        value |= (ULong) * (const UChar *)(r->at + i) << 8 * i;
    r->at += bytes;
    return value;
}

ULong jm_dwarf_take_uleb(DwarfReader *r)
{
    ULong value = 0;
    for (UInt shift = 0; shift < 64; shift += 7) {
        ULong byte = jm_dwarf_take(r, 1);
        value |= (byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
    r->failed = True;
    return 0;
}

Long jm_dwarf_take_sleb(DwarfReader *r)
{
    ULong value = 0;
    for (UInt shift = 0; shift < 64;) {
        ULong byte = jm_dwarf_take(r, 1);
        value |= (byte & 0x7f) << shift;
        shift += 7;
        if (!(byte & 0x80))
            return byte & 0x40 && shift < 64 ? (Long)(value | ~0ULL << shift) : (Long)value;
    }
    r->failed = True;
    return 0;
}

void jm_dwarf_skip(DwarfReader *r, ULong bytes)
{
    if (bytes > r->end - r->at)
        r->failed = True;
    else
        r->at += bytes;
}

// What compilers, linkers and hand-written assembly use in unwind tables; other operations fail.
#define MAX_DEPTH 64

typedef struct {
    Addr stack[MAX_DEPTH];
    UInt depth;
    Bool failed;
    Bool lacks_register; // read an unknown register: later values are wrong
    DwarfReader r;
    const Registers *registers;
} StackMachine;

static void push(StackMachine *m, Addr value)
{
    if (m->depth == MAX_DEPTH)
        m->failed = True;
    else
        m->stack[m->depth++] = value;
}

static Addr pop(StackMachine *m)
{
    if (m->depth == 0) {
        m->failed = True;
        return 0;
    }
    return m->stack[--m->depth];
}

static Long take_signed(DwarfReader *r, UInt bytes)
{
    UInt shift = 64 - 8 * bytes;
    return (Long)(jm_dwarf_take(r, bytes) << shift) >> shift;
}

// Executes an operation of the top two values.
static void compute(StackMachine *m, UInt op)
{
    const Addr b = pop(m), a = pop(m);
    const Long left = a, right = b;
    const Addr results[] = {
        [0x1a] = a & b,
        [0x1c] = a - b,
        [0x1e] = a * b,
        [0x22] = a + b,
        [0x24] = b < 64 ? a << b : 0,
        [0x29] = left == right,
        [0x2a] = left >= right,
        [0x2b] = left > right,
        [0x2c] = left <= right,
        [0x2d] = left < right,
        [0x2e] = left != right,
    };
    push(m, results[op]);
}

static void push_register(StackMachine *m, ULong number)
{
    Long offset = jm_dwarf_take_sleb(&m->r);
    if (number >= JM_N_REGISTERS)
        m->failed = True;
    else if (!jm_register_is_known(m->registers, number))
        m->lacks_register = True;
    else
        push(m, m->registers->value[number] + offset);
}

static void execute(StackMachine *m, UInt op)
{
    DwarfReader *r = &m->r;
    Addr top;
    switch (op) {
    case 0x06: // deref
        top = pop(m);
        m->failed |= !jm_read_word(top, &top);
        push(m, top);
        break;
    case 0x08 ... 0x0f: // const1u, const1s, const2u, … const8s
        push(m, op & 1 ? (Addr)take_signed(r, 1u << (op - 0x08) / 2) : jm_dwarf_take(r, 1u << (op - 0x08) / 2));
        break;
    case 0x10: // constu
        push(m, jm_dwarf_take_uleb(r));
        break;
    case 0x11: // consts
        push(m, jm_dwarf_take_sleb(r));
        break;
    case 0x13: // drop
        pop(m);
        break;
    case 0x20: // not
        push(m, ~pop(m));
        break;
    case 0x23: // plus_uconst
        top = pop(m);
        push(m, top + jm_dwarf_take_uleb(r));
        break;
    case 0x1a:          // and
    case 0x1c:          // minus
    case 0x1e:          // mul
    case 0x22:          // plus
    case 0x24:          // shl
    case 0x29 ... 0x2e: // eq, ge, gt, le, lt, ne
        compute(m, op);
        break;
    case 0x30 ... 0x4f: // lit0 to lit31
        push(m, op - 0x30);
        break;
    case 0x70 ... 0x8f: // breg0 to breg31
        push_register(m, op - 0x70);
        break;
    case 0x92: // bregx
        push_register(m, jm_dwarf_take_uleb(r));
        break;
    default:
        m->failed = True;
    }
}

Evaluation jm_dwarf_evaluate(DwarfReader r, const Registers *registers, const Addr *first, Addr *value)
{
    StackMachine m;
    m.depth = 0;
    m.failed = m.lacks_register = False;
    m.r = r;
    m.registers = registers;
    if (first)
        push(&m, *first);
    while (m.r.at < m.r.end) {
        execute(&m, jm_dwarf_take(&m.r, 1));
        if (m.lacks_register)
            return EVALUATION_LACKS_REGISTER;
        if (m.failed || m.r.failed)
            return EVALUATION_FAILED;
    }
    *value = pop(&m);
    return m.failed ? EVALUATION_FAILED : EVALUATED;
}
