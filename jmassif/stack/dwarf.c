// SPDX-License-Identifier: GPL-2.0-or-later

#include "stack/dwarf.h"
#include "base/client_memory.h"

// ---- numbers -------------------------------------------------------------------------------------------------

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

// ---- expressions ---------------------------------------------------------------------------------------------

#define MAX_DEPTH 64   // of the machine's stack
#define MAX_STEPS 1000 // a loop may never end

typedef struct {
    Addr stack[MAX_DEPTH];
    UInt depth;
    Bool failed;
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

// The `n`-th value from the top.
static Addr pick(StackMachine *m, ULong n)
{
    if (n >= m->depth) {
        m->failed = True;
        return 0;
    }
    return m->stack[m->depth - 1 - n];
}

static void dereference(StackMachine *m, UInt bytes)
{
    Addr value = 0, at = pop(m);
    if (bytes < 1 || bytes > sizeof value || !jm_read_bytes(at, &value, bytes))
        m->failed = True;
    push(m, value);
}

static Addr compute(UInt op, Addr a, Addr b)
{
    Long left = a, right = b;
    switch (op) {
    case 0x1a: // and
        return a & b;
    case 0x1b: // div; the caller has seen to zero
        return right == -1 ? -a : (Addr)(left / right);
    case 0x1c: // minus
        return a - b;
    case 0x1d: // mod
        return a % b;
    case 0x1e: // mul
        return a * b;
    case 0x21: // or
        return a | b;
    case 0x22: // plus
        return a + b;
    case 0x24: // shl
        return b < 64 ? a << b : 0;
    case 0x25: // shr
        return b < 64 ? a >> b : 0;
    case 0x26: // shra
        return left >> (b < 64 ? b : 63);
    case 0x27: // xor
        return a ^ b;
    case 0x29: // eq
        return left == right;
    case 0x2a: // ge
        return left >= right;
    case 0x2b: // gt
        return left > right;
    case 0x2c: // le
        return left <= right;
    case 0x2d: // lt
        return left < right;
    default: // 0x2e, ne
        return left != right;
    }
}

static void operate(StackMachine *m, UInt op)
{
    Addr b = pop(m), a = pop(m);
    if ((op == 0x1b || op == 0x1d) && b == 0)
        m->failed = True;
    else
        push(m, compute(op, a, b));
}

static Long take_signed(DwarfReader *r, UInt bytes)
{
    UInt shift = 64 - 8 * bytes;
    return (Long)(jm_dwarf_take(r, bytes) << shift) >> shift;
}

Evaluation jm_dwarf_evaluate(DwarfReader r, const Registers *registers, const Addr *first, Addr *value)
{
    const Addr start = r.at;
    StackMachine m;
    m.depth = 0;
    m.failed = False;
    if (first)
        push(&m, *first);
    UInt steps = 0;
    while (r.at < r.end) {
        UInt op = jm_dwarf_take(&r, 1);
        Addr top;
        switch (op) {
        case 0x03: // addr
            push(&m, jm_dwarf_take(&r, 8));
            break;
        case 0x06: // deref
            dereference(&m, 8);
            break;
        case 0x08: // const1u, then signed and unsigned ones of 1, 2, 4 and 8 bytes
        case 0x0a:
        case 0x0c:
        case 0x0e:
            push(&m, jm_dwarf_take(&r, 1u << (op - 0x08) / 2));
            break;
        case 0x09:
        case 0x0b:
        case 0x0d:
        case 0x0f:
            push(&m, take_signed(&r, 1u << (op - 0x09) / 2));
            break;
        case 0x10: // constu
            push(&m, jm_dwarf_take_uleb(&r));
            break;
        case 0x11: // consts
            push(&m, jm_dwarf_take_sleb(&r));
            break;
        case 0x12: // dup
            push(&m, pick(&m, 0));
            break;
        case 0x13: // drop
            pop(&m);
            break;
        case 0x14: // over
            push(&m, pick(&m, 1));
            break;
        case 0x15: // pick
            push(&m, pick(&m, jm_dwarf_take(&r, 1)));
            break;
        case 0x16: // swap
        case 0x17: // rot: the top goes below the two others
        {
            Addr a = pop(&m), b = pop(&m), c = op == 0x17 ? pop(&m) : 0;
            push(&m, a);
            if (op == 0x17)
                push(&m, c);
            push(&m, b);
            break;
        }
        case 0x19: // abs
            top = pop(&m);
            push(&m, (Long)top < 0 ? -top : top);
            break;
        case 0x1f: // neg
            push(&m, -pop(&m));
            break;
        case 0x20: // not
            push(&m, ~pop(&m));
            break;
        case 0x23: // plus_uconst
            top = pop(&m);
            push(&m, top + jm_dwarf_take_uleb(&r));
            break;
        case 0x28: // bra
        case 0x2f: // skip
        {
            Long distance = take_signed(&r, 2);
            if (op == 0x2f || pop(&m)) {
                Addr to = r.at + distance;
                if (to < start || to > r.end)
                    return EVALUATION_FAILED;
                r.at = to;
            }
            break;
        }
        case 0x92:          // bregx
        case 0x70 ... 0x8f: // breg0 to breg31
        {
            ULong number = op == 0x92 ? jm_dwarf_take_uleb(&r) : op - 0x70;
            Long offset = jm_dwarf_take_sleb(&r);
            if (number >= JM_N_REGISTERS)
                return EVALUATION_FAILED;
            if (!jm_register_is_known(registers, number))
                return EVALUATION_LACKS_REGISTER;
            push(&m, registers->value[number] + offset);
            break;
        }
        case 0x94: // deref_size
            dereference(&m, jm_dwarf_take(&r, 1));
            break;
        case 0x96: // nop
            break;
        case 0x1a ... 0x1e:
        case 0x21:
        case 0x22:
        case 0x24 ... 0x27:
        case 0x29 ... 0x2e:
            operate(&m, op);
            break;
        case 0x30 ... 0x4f: // lit0 to lit31
            push(&m, op - 0x30);
            break;
        default:
            return EVALUATION_FAILED;
        }
        if (m.failed || r.failed || ++steps == MAX_STEPS)
            return EVALUATION_FAILED;
    }
    *value = pop(&m);
    return m.failed ? EVALUATION_FAILED : EVALUATED;
}
