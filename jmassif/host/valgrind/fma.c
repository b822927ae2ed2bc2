// SPDX-License-Identifier: GPL-2.0-or-later
//
// VEX expresses the four instructions x*y+z, x*y-z, -(x*y)+z and -(x*y)-z by one operation with the addend, the result
// or both negated. Hardware keeps the sign of a NaN and rounds once, so the negations are found and the program's own
// instruction is executed.

#include "host/valgrind/translation.h"

#if defined(VGA_amd64)

// MXCSR while translated code runs: all exceptions masked, round to nearest (System V ABI, 3.2.3).
#define MXCSR_DEFAULT        0x1f80
#define MXCSR_ROUNDING_SHIFT 13

static void set_rounding(ULong rounding)
{
    UInt mxcsr = MXCSR_DEFAULT | (UInt)(rounding & 3) << MXCSR_ROUNDING_SHIFT;
    __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
}

// Operand 1 is the addend, 2 and 3 are the factors. The processor looks for NaNs in the order 2, 3, 1 (Intel SDM, vol.
// 1, 14.5.2).
#define HELPER(name, type, bits, instruction)                                                                          \
    static ULong name(ULong x_bits, ULong y_bits, ULong z_bits, ULong rounding)                                        \
    {                                                                                                                  \
        union {                                                                                                        \
            bits as_bits;                                                                                              \
            type value;                                                                                                \
        } x = {(bits)x_bits}, y = {(bits)y_bits}, z = {(bits)z_bits};                                                  \
        if (UNLIKELY(rounding))                                                                                        \
            set_rounding(rounding);                                                                                    \
        __asm__ volatile(instruction " %2, %1, %0" : "+x"(z.value) : "x"(x.value), "x"(y.value));                      \
        if (UNLIKELY(rounding))                                                                                        \
            set_rounding(0);                                                                                           \
        return z.as_bits;                                                                                              \
    }

HELPER(add64, double, ULong, "vfmadd231sd")
HELPER(sub64, double, ULong, "vfmsub231sd")
HELPER(neg_add64, double, ULong, "vfnmadd231sd")
HELPER(neg_sub64, double, ULong, "vfnmsub231sd")
HELPER(add32, float, UInt, "vfmadd231ss")
HELPER(sub32, float, UInt, "vfmsub231ss")
HELPER(neg_add32, float, UInt, "vfnmadd231ss")
HELPER(neg_sub32, float, UInt, "vfnmsub231ss")

typedef struct {
    const HChar *name;
    ULong (*call)(ULong, ULong, ULong, ULong);
} Helper;

// Indexes: 32 bits, product negated, addend negated.
static const Helper helpers[2][2][2] = {
    {{{"add64", add64}, {"sub64", sub64}}, {{"neg_add64", neg_add64}, {"neg_sub64", neg_sub64}}},
    {{{"add32", add32}, {"sub32", sub32}}, {{"neg_add32", neg_add32}, {"neg_sub32", neg_sub32}}},
};

static Bool is_fma(const IRStmt *st)
{
    if (st->tag != Ist_WrTmp || st->Ist.WrTmp.data->tag != Iex_Qop)
        return False;
    switch (st->Ist.WrTmp.data->Iex.Qop.details->op) {
    case Iop_MAddF64:
    case Iop_MSubF64:
    case Iop_MAddF32:
    case Iop_MSubF32:
        return True;
    default:
        return False;
    }
}

static Bool has_fma(const IRSB *block)
{
    for (Int i = 0; i < block->stmts_used; i++)
        if (is_fma(block->stmts[i]))
            return True;
    return False;
}

// The statement that sets each temporary, if it is a negation or a multiply-add.
static const IRStmt **set_by;

static Bool is_negation(const IRStmt *st)
{
    if (st->tag != Ist_WrTmp || st->Ist.WrTmp.data->tag != Iex_Unop)
        return False;
    IROp op = st->Ist.WrTmp.data->Iex.Unop.op;
    return op == Iop_NegF64 || op == Iop_NegF32;
}

static const IRStmt *setter(const IRExpr *operand)
{
    return operand->tag == Iex_RdTmp ? set_by[operand->Iex.RdTmp.tmp] : NULL;
}

// Replace a negated operand by the operand of the negation; return whether it was negated.
static Bool strip_negation(IRExpr **operand)
{
    const IRStmt *st = setter(*operand);
    if (!st || !is_negation(st))
        return False;
    *operand = st->Ist.WrTmp.data->Iex.Unop.arg;
    return True;
}

// Return the multiply-add that the statement negates; NULL if it does anything else.
static const IRStmt *negated_fma(const IRStmt *st)
{
    const IRStmt *fma = is_negation(st) ? setter(st->Ist.WrTmp.data->Iex.Unop.arg) : NULL;
    return fma && is_fma(fma) ? fma : NULL;
}

static IRExpr *assign(IRSB *out, IRType type, IRExpr *value)
{
    IRTemp t = newIRTemp(out->tyenv, type);
    addStmtToIRSB(out, IRStmt_WrTmp(t, value));
    return IRExpr_RdTmp(t);
}

static IRExpr *as_bits(IRSB *out, Bool is_32, IRExpr *value)
{
    if (!is_32)
        return assign(out, Ity_I64, IRExpr_Unop(Iop_ReinterpF64asI64, value));
    IRExpr *bits = assign(out, Ity_I32, IRExpr_Unop(Iop_ReinterpF32asI32, value));
    return assign(out, Ity_I64, IRExpr_Unop(Iop_32Uto64, bits));
}

static IRExpr *from_bits(IRSB *out, Bool is_32, IRExpr *bits)
{
    if (!is_32)
        return IRExpr_Unop(Iop_ReinterpI64asF64, bits);
    return IRExpr_Unop(Iop_ReinterpI32asF32, assign(out, Ity_I32, IRExpr_Unop(Iop_64to32, bits)));
}

// VEX's operation says "to nearest" whatever the program has chosen, so read the rounding mode from the program's
// state.
static void add_in_hardware(IRSB *out, IRTemp to, const IRStmt *st, Bool negates_result)
{
    const IRQop *fma = st->Ist.WrTmp.data->Iex.Qop.details;
    Bool is_32 = fma->op == Iop_MAddF32 || fma->op == Iop_MSubF32;
    IRExpr *x = fma->arg2, *y = fma->arg3, *z = fma->arg4;
    Bool negates_product = strip_negation(&x);
    negates_product ^= strip_negation(&y) ^ negates_result;
    Bool negates_addend = negates_result ^ strip_negation(&z) ^ (fma->op == Iop_MSubF32 || fma->op == Iop_MSubF64);
    const Helper *helper = &helpers[is_32][negates_product][negates_addend];
    IRExpr *rounding = assign(out, Ity_I64, IRExpr_Get(offsetof(VexGuestAMD64State, guest_SSEROUND), Ity_I64));
    IRExpr **args = mkIRExprVec_4(as_bits(out, is_32, x), as_bits(out, is_32, y), as_bits(out, is_32, z), rounding);
    IRExpr *bits = assign(out, Ity_I64, mkIRExprCCall(Ity_I64, 0, helper->name, helper->call, args));
    addStmtToIRSB(out, IRStmt_WrTmp(to, from_bits(out, is_32, bits)));
}

IRSB *jm_fma_in_hardware(IRSB *in, const VexArchInfo *host)
{
    // Later releases of VEX emit the instruction themselves if the processor has it, and say so; a call in its place
    // would be several times slower.
#if defined(VEX_HWCAPS_AMD64_FMA3)
    if (host->hwcaps & VEX_HWCAPS_AMD64_FMA3)
        return in;
#endif
    if (!has_fma(in))
        return in;
    set_by = VG_(calloc)("jm.fma", in->tyenv->types_used, sizeof *set_by);
    IRSB *out = deepCopyIRSBExceptStmts(in);
    for (Int i = 0; i < in->stmts_used; i++) {
        IRStmt *st = in->stmts[i];
        const IRStmt *inner = negated_fma(st);
        // A multiply-add that is used only by its negation becomes dead code, which VEX removes.
        if (inner)
            add_in_hardware(out, st->Ist.WrTmp.tmp, inner, True);
        else if (is_fma(st))
            add_in_hardware(out, st->Ist.WrTmp.tmp, st, False);
        else
            addStmtToIRSB(out, st);
        if (is_fma(st) || is_negation(st))
            set_by[st->Ist.WrTmp.tmp] = st;
    }
    VG_(free)(set_by);
    return out;
}

// CPUID, leaf 1: FMA, and the system saves the registers that it needs (Intel SDM, vol. 1, 14.5.3).
enum { CPUID_FMA = 1 << 12, CPUID_OSXSAVE = 1 << 27, XCR0_SSE_AND_AVX = 6 };

Bool jm_fma_is_available(void)
{
    UInt a = 1, b, c = 0, d;
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    if ((c & CPUID_FMA) == 0 || (c & CPUID_OSXSAVE) == 0)
        return False;
    UInt low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low & XCR0_SSE_AND_AVX) == XCR0_SSE_AND_AVX;
}

#else

Bool jm_fma_is_available(void)
{
    return False;
}

IRSB *jm_fma_in_hardware(IRSB *in, const VexArchInfo *host)
{
    return in;
}

#endif
