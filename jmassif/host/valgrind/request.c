// SPDX-License-Identifier: GPL-2.0-or-later
//
// A superblock that ends with a request (the magic instructions of valgrind.h) gets a call of answer() before its end,
// and an exit to the following code if answer() returns 1. Other requests reach the core as usual.

#include "host/valgrind/translation.h"
#include "base/libc.h"
#include "host/host.h"

#include <valgrind/valgrind.h>

#if defined(VGA_amd64)
#define GUEST_ARGS   guest_RAX
#define GUEST_RESULT guest_RDX
#define GUEST_IP     guest_RIP
#define GUEST_FIRST  guest_RAX
#define N_REGISTERS  16
#else
#define GUEST_ARGS   guest_X4
#define GUEST_RESULT guest_X3
#define GUEST_IP     guest_PC
#define GUEST_FIRST  guest_X0
#define N_REGISTERS  32
#endif

static Bool find_answer(ThreadId tid, UWord *args, UWord *result)
{
    switch (args[0]) {
    // The core's replacement of malloc calls the functions that the tool has registered.
    case VG_USERREQ__CLIENT_CALL1:
        *result = ((UWord(*)(ThreadId, UWord))args[1])(tid, args[2]);
        return True;
    case VG_USERREQ__CLIENT_CALL2:
        *result = ((UWord(*)(ThreadId, UWord, UWord))args[1])(tid, args[2], args[3]);
        return True;
    case VG_USERREQ__CLIENT_CALL3:
        *result = ((UWord(*)(ThreadId, UWord, UWord, UWord))args[1])(tid, args[2], args[3], args[4]);
        return True;
    default:
        return VG_IS_TOOL_USERREQ('J', 'M', args[0]) && jm_tool_request(tid, args, result);
    }
}

// Return 1 if the request was answered; the result is then in its register.
#if defined(VGA_amd64)
#define N_REGPARMS 1
#define ARGUMENTS  mkIRExprVec_1(IRExpr_GSPTR())

static VG_REGPARM(1) UWord answer(VexGuestArchState *guest)
{
    UWord result;
    if (!find_answer(VG_(get_running_tid)(), (UWord *)guest->GUEST_ARGS, &result))
        return 0;
    guest->GUEST_RESULT = result;
    return 1;
}
#else
// VEX cannot pass the guest state to helpers on arm64 (3.19, 3.24, 3.27: an assertion fails).
#define N_REGPARMS 0
#define ARGUMENTS  mkIRExprVec_0()

static UWord answer(void)
{
    const ThreadId tid = VG_(get_running_tid)();
    UWord args, result;
    VG_(get_shadow_regs_area)(tid, (UChar *)&args, 0, offsetof(VexGuestArchState, GUEST_ARGS), sizeof args);
    if (!find_answer(tid, (UWord *)args, &result))
        return 0;
    VG_(set_shadow_regs_area)(tid, 0, offsetof(VexGuestArchState, GUEST_RESULT), sizeof result, (UChar *)&result);
    return 1;
}
#endif

IRSB *jm_request_answer_at_once(IRSB *in)
{
    if (in->jumpkind != Ijk_ClientReq || in->next->tag != Iex_Const)
        return in;
    IRSB *out = deepCopyIRSBExceptStmts(in);
    for (Int i = 0; i < in->stmts_used; i++)
        addStmtToIRSB(out, in->stmts[i]);
    addStmtToIRSB(out, IRStmt_Put(in->offsIP, in->next));
    IRTemp answered = newIRTemp(out->tyenv, Ity_I64);
    IRDirty *call =
        unsafeIRDirty_1_N(answered, N_REGPARMS, "jm_request_answer", VG_(fnptr_to_fnentry)(answer), ARGUMENTS);
    // Declare the registers read: the stack is unwound from their current values.
    memset(call->fxState, 0, sizeof call->fxState);
    call->nFxState = 3;
    call->fxState[0].fx = Ifx_Read;
    call->fxState[0].offset = offsetof(VexGuestArchState, GUEST_FIRST);
    call->fxState[0].size = N_REGISTERS * sizeof(UWord);
    call->fxState[1].fx = Ifx_Read;
    call->fxState[1].offset = offsetof(VexGuestArchState, GUEST_IP);
    call->fxState[1].size = sizeof(UWord);
    call->fxState[2].fx = Ifx_Modify;
    call->fxState[2].offset = offsetof(VexGuestArchState, GUEST_RESULT);
    call->fxState[2].size = sizeof(UWord);
    addStmtToIRSB(out, IRStmt_Dirty(call));
    IRTemp guard = newIRTemp(out->tyenv, Ity_I1);
    addStmtToIRSB(out, IRStmt_WrTmp(guard, IRExpr_Unop(Iop_64to1, IRExpr_RdTmp(answered))));
    addStmtToIRSB(out, IRStmt_Exit(IRExpr_RdTmp(guard), Ijk_Boring, in->next->Iex.Const.con, in->offsIP));
    return out;
}
