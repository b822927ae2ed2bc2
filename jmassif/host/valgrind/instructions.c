// SPDX-License-Identifier: GPL-2.0-or-later
//
// Counts the program's instructions in its translated code, for --time-unit=i.

#include "host/valgrind/instructions.h"
#include "base/clock.h"

// Emit jm_clock_instructions += n inline: a load, an add and a store before each exit of the superblock.
static void add_count(IRSB *out, UInt n)
{
    const IREndness end = Iend_LE;
    IRExpr *address = IRExpr_Const(IRConst_U64((ULong)(Addr)&jm_clock_instructions));
    IRTemp before = newIRTemp(out->tyenv, Ity_I64);
    IRTemp after = newIRTemp(out->tyenv, Ity_I64);
    addStmtToIRSB(out, IRStmt_WrTmp(before, IRExpr_Load(end, Ity_I64, address)));
    addStmtToIRSB(out,
                  IRStmt_WrTmp(after, IRExpr_Binop(Iop_Add64, IRExpr_RdTmp(before), IRExpr_Const(IRConst_U64(n)))));
    addStmtToIRSB(out, IRStmt_Store(end, address, IRExpr_RdTmp(after)));
}

IRSB *jm_count_instructions(IRSB *in)
{
    IRSB *out = deepCopyIRSBExceptStmts(in);
    UInt n = 0;
    for (Int i = 0; i < in->stmts_used; i++) {
        IRStmt *st = in->stmts[i];
        if (st->tag == Ist_IMark)
            n++;
        else if (st->tag == Ist_Exit && n) {
            add_count(out, n);
            n = 0;
        }
        addStmtToIRSB(out, st);
    }
    if (n)
        add_count(out, n);
    return out;
}
