// SPDX-License-Identifier: GPL-2.0-or-later
//
// The instructions that compilers put most; all others count as readers.

#include "valgrind/x86_flags.h"

#define MAX_PREFIXES 3

typedef struct {
    const UChar *at;                  // behind what was taken
    Bool is_word, is_repeat, is_wide; // 66, F2 or F3, REX.W
} Code;

static FlagsEffect with_immediate(Code *c, UInt bytes, FlagsEffect effect)
{
    c->at += bytes;
    return effect;
}

// The operand and how it is addressed.
static UInt take_operand(Code *c)
{
    const UChar modrm = *c->at++;
    const UInt mod = modrm >> 6, rm = modrm & 7;
    if (mod == 3)
        return modrm;
    UInt more = mod == 1 ? 1 : mod == 2 || (mod == 0 && rm == 5) ? 4 : 0;
    if (rm == 4 && (*c->at++ & 7) == 5 && mod == 0)
        more = 4;
    c->at += more;
    return modrm;
}

static FlagsEffect with_operand(Code *c, UInt immediate, FlagsEffect effect)
{
    take_operand(c);
    return with_immediate(c, immediate, effect);
}

static UInt word_or_int(const Code *c)
{
    return c->is_word && !c->is_wide ? 2 : 4;
}

// add, or, adc, sbb, and, sub, xor, cmp by number.
static FlagsEffect arithmetic(UInt number)
{
    return number == 2 || number == 3 ? FLAGS_ARE_READ : FLAGS_ARE_SET;
}

static FlagsEffect by_immediate(Code *c, UInt bytes)
{
    return with_immediate(c, bytes, arithmetic(take_operand(c) >> 3 & 7));
}

// A shift by nothing leaves them, a rotation most.
static FlagsEffect shift(Code *c, UInt immediate)
{
    const UInt number = take_operand(c) >> 3 & 7;
    const UInt count = immediate ? *c->at & 31 : 1;
    const Bool is_set = (number == 4 || number == 5 || number == 7) && count > 0;
    return with_immediate(c, immediate, is_set ? FLAGS_ARE_SET : FLAGS_ARE_READ);
}

// test, not, neg, mul, imul, div, idiv
static FlagsEffect unary(Code *c, UInt immediate)
{
    const UInt number = take_operand(c) >> 3 & 7;
    if (number == 0)
        return with_immediate(c, immediate, FLAGS_ARE_SET);
    return number == 2 ? FLAGS_STAY : 3 <= number && number <= 5 ? FLAGS_ARE_SET : FLAGS_ARE_READ;
}

// mov, push and pop of what the number in the operand's byte says, 0 of most.
static FlagsEffect if_number(Code *c, UInt wanted, UInt immediate)
{
    const UInt number = take_operand(c) >> 3 & 7;
    return with_immediate(c, immediate, number == wanted ? FLAGS_STAY : FLAGS_ARE_READ);
}

static FlagsEffect behind_0f(Code *c)
{
    const UChar op = *c->at++;
    switch (op) {
    case 0x1e: // endbr64
        return c->is_repeat && *c->at++ == 0xfa ? FLAGS_STAY : FLAGS_ARE_READ;
    case 0x2e ... 0x2f: // ucomis, comis
    case 0xaf:          // imul
        return with_operand(c, 0, FLAGS_ARE_SET);
    case 0x10 ... 0x17: // moves of vectors
    case 0x1f:          // nop
    case 0x28 ... 0x2a:
    case 0x2c ... 0x2d: // conversions
    case 0x51 ... 0x6f: // arithmetic and moves of vectors
    case 0x74 ... 0x76:
    case 0x7e ... 0x7f:
    case 0xb6 ... 0xb7: // movzx
    case 0xbe ... 0xbf: // movsx
    case 0xd4:
    case 0xd6 ... 0xd7:
    case 0xdb:
    case 0xdf:
    case 0xeb:
    case 0xef:
    case 0xfa ... 0xfe:
        return with_operand(c, 0, FLAGS_STAY);
    case 0x70: // shuffles
    case 0xc6:
        return with_operand(c, 1, FLAGS_STAY);
    default:
        return FLAGS_ARE_READ;
    }
}

static FlagsEffect effect_of(Code *c)
{
    const UChar op = *c->at++;
    if (c->is_repeat && op != 0x0f)
        return FLAGS_ARE_READ;
    if (op < 0x40 && (op & 7) <= 5) {
        if ((op & 7) < 4)
            take_operand(c);
        return with_immediate(c, (op & 7) == 4 ? 1 : (op & 7) == 5 ? word_or_int(c) : 0, arithmetic(op >> 3));
    }
    switch (op) {
    case 0x0f:
        return behind_0f(c);
    case 0x50 ... 0x5f: // push, pop
    case 0x90:          // nop
    case 0x98 ... 0x99: // cltq, cqto
    case 0xc9:          // leave
        return FLAGS_STAY;
    case 0x63:          // movslq
    case 0x88 ... 0x8b: // mov
    case 0x8d:          // lea
        return with_operand(c, 0, FLAGS_STAY);
    case 0x68: // push
        return with_immediate(c, 4, c->is_word ? FLAGS_ARE_READ : FLAGS_STAY);
    case 0x6a:
    case 0xb0 ... 0xb7: // mov
        return with_immediate(c, 1, FLAGS_STAY);
    case 0x69: // imul
    case 0x6b:
        return with_operand(c, op == 0x6b ? 1 : word_or_int(c), FLAGS_ARE_SET);
    case 0x80:
    case 0x83:
        return by_immediate(c, 1);
    case 0x81:
        return by_immediate(c, word_or_int(c));
    case 0x84 ... 0x85: // test
        return with_operand(c, 0, FLAGS_ARE_SET);
    case 0xa8:
        return with_immediate(c, 1, FLAGS_ARE_SET);
    case 0xa9:
        return with_immediate(c, word_or_int(c), FLAGS_ARE_SET);
    case 0xb8 ... 0xbf: // mov
        return with_immediate(c, c->is_wide ? 8 : word_or_int(c), FLAGS_STAY);
    case 0xc0 ... 0xc1:
    case 0xd0 ... 0xd1:
        return shift(c, op < 0xd0);
    case 0xc6:
        return if_number(c, 0, 1);
    case 0xc7:
        return if_number(c, 0, word_or_int(c));
    case 0xf6:
        return unary(c, 1);
    case 0xf7:
        return unary(c, word_or_int(c));
    case 0xff: // push
        return if_number(c, 6, 0);
    default:
        return FLAGS_ARE_READ;
    }
}

FlagsEffect jm_x86_flags_effect(const UChar *code, UInt *length)
{
    Code c = {.at = code};
    for (UInt i = 0; i < MAX_PREFIXES; i++, c.at++) {
        if (*c.at == 0x66)
            c.is_word = True;
        else if (*c.at == 0xf2 || *c.at == 0xf3)
            c.is_repeat = True;
        else if (*c.at != 0x2e && *c.at != 0x64) // cs, fs
            break;
    }
    if ((*c.at & 0xf0) == 0x40)
        c.is_wide = (*c.at++ & 8) != 0;
    const FlagsEffect effect = effect_of(&c);
    *length = c.at - code;
    return effect;
}

Bool jm_x86_leads_on(const UChar *code, UInt *length, Addr *to)
{
    Int distance;
    if (*code == 0xeb) { // jmp
        *length = 2;
        *to = (Addr)code + *length + *(const Char *)(code + 1);
        return True;
    }
    VG_(memcpy)(&distance, code + 1, sizeof distance);
    *length = 5;
    *to = (Addr)code + *length + distance;
    return *code == 0xe8 || *code == 0xe9; // call, jmp
}
