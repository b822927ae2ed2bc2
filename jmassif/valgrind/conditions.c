// SPDX-License-Identifier: GPL-2.0-or-later
//
// Conditions of x86-64 that VEX would call a function for: it knows most by the arithmetic that set the condition
// codes, but not whether what a 64-bit test found is negative, which is how C asks for errors. VEX asks here when it
// knows no better than the call (the linker leads it here, --wrap).

#include "base/compat.h"

#if defined(ANSWERS_CONDITIONS)

// As instructions have them. Odd ones are the opposites of those before them.
enum {
    IF_OVERFLOW = 0,
    IF_BELOW = 2,
    IF_ZERO = 4,
    IF_BELOW_OR_ZERO = 6,
    IF_NEGATIVE = 8,
    IF_LESS = 12,
    IF_LESS_OR_ZERO = 14
};

// VEX's numbers of what set the condition codes; each is for bytes, and those of 16, 32 and 64 bits follow.
enum { ADD = 1, SUB = 5, LOGIC = 17, INC = 21, DEC = 25, SHL = 29, SHR = 33, END = 37 };
#define OF_64_BITS 3

ULong amd64g_calculate_rflags_all(ULong operation, ULong first, ULong second, ULong before);

// These are in no public header: whether they are what they have always been.
static Bool numbers_are_known(void)
{
    static const struct {
        ULong operation, first, second, flags;
    } samples[] = {
        {ADD + OF_64_BITS, ~0ULL, 1, 0x55},        // 0: carry, parity, adjust, zero
        {SUB + OF_64_BITS, 0, 1, 0x95},            // -1: carry, parity, adjust, sign
        {LOGIC + OF_64_BITS, 1ULL << 63, 0, 0x84}, // parity, sign
        {INC + OF_64_BITS, 1ULL << 63, 0, 0x894},  // overflow, parity, adjust, sign
        {DEC + OF_64_BITS, ~0ULL >> 1, 0, 0x814},  // overflow, parity, adjust
        {SHL + OF_64_BITS, 0, 1ULL << 63, 0x845},  // overflow, parity, zero, carry
        {SHR + OF_64_BITS, 0, 1, 0x45},            // parity, zero, carry
    };
    for (UInt i = 0; i < sizeof samples / sizeof samples[0]; i++)
        if (amd64g_calculate_rflags_all(samples[i].operation, samples[i].first, samples[i].second, 0) !=
            samples[i].flags)
            return False;
    return True;
}

static IRExpr *number(ULong value)
{
    return IRExpr_Const(IRConst_U64(value));
}

// The operand where its sign is the highest bit and nothing is below it.
static IRExpr *highest(IRExpr *operand, UInt size)
{
    const UInt bits = 8u << size;
    return bits == 64 ? operand : IRExpr_Binop(Iop_Shl64, operand, IRExpr_Const(IRConst_U8((UChar)(64 - bits))));
}

static IRExpr *compare(IROp operation, IRExpr *left, IRExpr *right)
{
    return IRExpr_Unop(Iop_1Uto64, IRExpr_Binop(operation, left, right));
}

static IRExpr *ordered(Bool is_opposite, IROp less, IROp less_or_equal, IRExpr *left, IRExpr *right)
{
    return is_opposite ? compare(less_or_equal, right, left) : compare(less, left, right);
}

// What a subtraction leaves: `difference` is its result.
static IRExpr *compared(ULong condition, IRExpr *left, IRExpr *right, IRExpr *difference)
{
    const Bool is_opposite = condition & 1;
    switch (condition & ~1ULL) {
    case IF_ZERO:
        return compare(is_opposite ? Iop_CmpNE64 : Iop_CmpEQ64, left, right);
    case IF_NEGATIVE:
        return ordered(is_opposite, Iop_CmpLT64S, Iop_CmpLE64S, difference, number(0));
    case IF_BELOW:
        return ordered(is_opposite, Iop_CmpLT64U, Iop_CmpLE64U, left, right);
    case IF_BELOW_OR_ZERO:
        return ordered(is_opposite, Iop_CmpLE64U, Iop_CmpLT64U, left, right);
    case IF_LESS:
        return ordered(is_opposite, Iop_CmpLT64S, Iop_CmpLE64S, left, right);
    case IF_LESS_OR_ZERO:
        return ordered(is_opposite, Iop_CmpLE64S, Iop_CmpLT64S, left, right);
    default:
        return NULL;
    }
}

// NULL: not known here.
static IRExpr *answer(ULong condition, ULong operation, IRExpr *first, IRExpr *second)
{
    const UInt size = (operation - 1) % 4;
    IRExpr *left = highest(first, size);
    if (operation >= LOGIC && operation < INC) { // carry and overflow are clear, as if 0 were subtracted
        if ((condition & ~1ULL) == IF_OVERFLOW)
            return number(condition & 1);
        return compared(condition, left, number(0), left);
    }
    if (operation >= SUB && operation < SUB + 4) {
        IRExpr *right = highest(second, size);
        return compared(condition, left, right, IRExpr_Binop(Iop_Sub64, left, right));
    }
    const Bool is_sum = operation >= ADD && operation < SUB;
    if (!is_sum && (operation < INC || operation >= END))
        return NULL;
    // Counting and shifting leave their result, and of carry and overflow more than that.
    IRExpr *result = is_sum ? IRExpr_Binop(Iop_Add64, left, highest(second, size)) : left;
    switch (condition & ~1ULL) {
    case IF_ZERO:
    case IF_NEGATIVE:
        return compared(condition, result, number(0), result);
    case IF_BELOW:
        return is_sum ? compared(condition, result, left, NULL) : NULL;
    default:
        return NULL;
    }
}

IRExpr *__real_guest_amd64_spechelper(const HChar *function, IRExpr **arguments, IRStmt **before, Int n_before);
IRExpr *__wrap_guest_amd64_spechelper(const HChar *function, IRExpr **arguments, IRStmt **before, Int n_before);

IRExpr *__wrap_guest_amd64_spechelper(const HChar *function, IRExpr **arguments, IRStmt **before, Int n_before)
{
    static enum { NOT_ASKED, KNOWN, UNKNOWN } numbers;
    IRExpr *theirs = __real_guest_amd64_spechelper(function, arguments, before, n_before);
    if (theirs || VG_(strcmp)(function, "amd64g_calculate_condition") != 0 || arguments[0]->tag != Iex_Const ||
        arguments[1]->tag != Iex_Const)
        return theirs;
    if (numbers == NOT_ASKED)
        numbers = numbers_are_known() ? KNOWN : UNKNOWN;
    if (numbers == UNKNOWN)
        return NULL;
    return answer(arguments[0]->Iex.Const.con->Ico.U64, arguments[1]->Iex.Const.con->Ico.U64, arguments[2],
                  arguments[3]);
}

#endif
