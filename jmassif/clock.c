// SPDX-License-Identifier: GPL-2.0-or-later
//
// The three clocks behind --time-unit.

#include "clock.h"
#include "ledger.h"
#include "options.h"

static ULong start_ms;
static ULong start_unix_ms;
static ULong cached;
static ULong n_instructions;

static ULong monotonic_ms(void)
{
    struct vki_timespec now;
    VG_(clock_gettime)(&now, VKI_CLOCK_MONOTONIC);
    return (ULong)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void jm_clock_init(void)
{
    struct vki_timeval now;
    VG_(gettimeofday)(&now, NULL);
    start_unix_ms = (ULong)now.tv_sec * 1000 + now.tv_usec / 1000;
    start_ms = monotonic_ms();
}

ULong jm_clock_ms(void)
{
    return monotonic_ms() - start_ms;
}

ULong jm_clock_start_unix_ms(void)
{
    return start_unix_ms;
}

ULong jm_clock_now(void)
{
    switch (jm_options.time_unit) {
    case TIME_MS:
        cached = jm_clock_ms();
        break;
    case TIME_INSTRUCTIONS:
        cached = n_instructions;
        break;
    case TIME_BYTES:
        cached = jm_ledger_traffic_bytes();
        break;
    }
    return cached;
}

ULong jm_clock_cached(void)
{
    return jm_options.time_unit == TIME_MS ? cached : jm_clock_now(); // the others cost nothing to read
}

// n_instructions += n, inlined: a load, an add and a store before each place where the superblock can be left.
static void add_count(IRSB *out, UInt n)
{
#if defined(VG_BIGENDIAN)
    const IREndness end = Iend_BE;
#else
    const IREndness end = Iend_LE;
#endif
    IRExpr *address = IRExpr_Const(IRConst_U64((ULong)(Addr)&n_instructions));
    IRTemp before = newIRTemp(out->tyenv, Ity_I64);
    IRTemp after = newIRTemp(out->tyenv, Ity_I64);
    addStmtToIRSB(out, IRStmt_WrTmp(before, IRExpr_Load(end, Ity_I64, address)));
    addStmtToIRSB(out,
                  IRStmt_WrTmp(after, IRExpr_Binop(Iop_Add64, IRExpr_RdTmp(before), IRExpr_Const(IRConst_U64(n)))));
    addStmtToIRSB(out, IRStmt_Store(end, address, IRExpr_RdTmp(after)));
}

IRSB *jm_clock_count_instructions(IRSB *in)
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
