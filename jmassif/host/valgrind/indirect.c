// SPDX-License-Identifier: GPL-2.0-or-later
//
// A superblock is translated right before the program runs it, so the registers have their values at its start. The
// target of a return is on the stack already, and the target of a library call is in a table at an address that is part
// of the instruction (.got, .got.plt). The superblock compares its target with this prediction and, if they are equal,
// ends with a direct jump, which the core links to the translation of the target. Otherwise it jumps as usual. A wrong
// guess, also in a superblock kept for other runs, costs a comparison.
//
// Other indirect jumps, from one bytecode of an interpreter to the next or of a switch, lead elsewhere each time.

#include "host/valgrind/translation.h"
#include "base/client_memory.h"
#include "host/valgrind/code_file.h"

#define MAX_STEPS 40         // additions from a register to an address: enough for a return after many pops
#define MAX_FRAME (1u << 20) // bytes between the stack pointer and a return address

static const IRExpr *set_to(const IRSB *in, IRTemp t)
{
    for (Int i = in->stmts_used - 1; i >= 0; i--)
        if (in->stmts[i]->tag == Ist_WrTmp && in->stmts[i]->Ist.WrTmp.tmp == t)
            return in->stmts[i]->Ist.WrTmp.data;
    return NULL;
}

// Evaluate a sum of registers and constants; nothing is read from the program's memory.
static Bool evaluate(const IRSB *in, const IRExpr *e, UInt steps, UWord *value)
{
    UWord left, right;
    if (!e || steps == 0)
        return False;
    switch (e->tag) {
    case Iex_Const:
        *value = e->Iex.Const.con->Ico.U64;
        return e->Iex.Const.con->tag == Ico_U64;
    case Iex_Get:
        if (e->Iex.Get.ty != Ity_I64)
            return False;
        VG_(get_shadow_regs_area)(VG_(get_running_tid)(), (UChar *)value, 0, e->Iex.Get.offset, sizeof *value);
        return True;
    case Iex_RdTmp:
        return evaluate(in, set_to(in, e->Iex.RdTmp.tmp), steps - 1, value);
    case Iex_Binop:
        if (e->Iex.Binop.op != Iop_Add64 && e->Iex.Binop.op != Iop_Sub64)
            return False;
        if (!evaluate(in, e->Iex.Binop.arg1, steps - 1, &left) || !evaluate(in, e->Iex.Binop.arg2, steps - 1, &right))
            return False;
        *value = e->Iex.Binop.op == Iop_Add64 ? left + right : left - right;
        return True;
    default:
        return False;
    }
}

// Predict the target of the superblock; False if its end does not show it.
static Bool look_ahead(const IRSB *in, Addr *to)
{
    const Bool returns = in->jumpkind == Ijk_Ret;
    if ((!returns && in->jumpkind != Ijk_Call && in->jumpkind != Ijk_Boring) || in->next->tag != Iex_RdTmp)
        return False;
    const IRExpr *next = set_to(in, in->next->Iex.RdTmp.tmp);
    if (returns && next && next->tag == Iex_Get) // arm64: the link register
        return evaluate(in, next, 1, to);
    if (!next || next->tag != Iex_Load || next->Iex.Load.ty != Ity_I64)
        return False;
    const IRExpr *from = next->Iex.Load.addr;
    UWord address;
    if (returns)
        return evaluate(in, from, MAX_STEPS, &address) && address - VG_(get_SP)(VG_(get_running_tid)()) < MAX_FRAME &&
               jm_read_word(address, to);
    return from->tag == Iex_Const && evaluate(in, from, 1, &address) && jm_read_word(address, to);
}

// Detect lazy binding: an entry that the loader has not filled in yet leads to the resolver, at the next instruction of
// the call's own stub.
static Bool is_in_wait(const IRSB *in, Addr to)
{
    for (Int i = in->stmts_used - 1; i >= 0; i--)
        if (in->stmts[i]->tag == Ist_IMark)
            return to == in->stmts[i]->Ist.IMark.addr + in->stmts[i]->Ist.IMark.len;
    return False;
}

void jm_indirect_foresee(IRSB *block)
{
    Addr to;
    if (VG_(get_running_tid)() == VG_INVALID_THREADID || !look_ahead(block, &to) || is_in_wait(block, to))
        return;
    if (!jm_mapped_code(to))
        return;
    IRTemp is_there = newIRTemp(block->tyenv, Ity_I1);
    IRExpr *comparison = IRExpr_Binop(Iop_CmpEQ64, block->next, IRExpr_Const(IRConst_U64(to)));
    addStmtToIRSB(block, IRStmt_WrTmp(is_there, comparison));
    addStmtToIRSB(block, IRStmt_Exit(IRExpr_RdTmp(is_there), Ijk_Boring, IRConst_U64(to), block->offsIP));
}
