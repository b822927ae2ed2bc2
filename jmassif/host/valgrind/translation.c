// SPDX-License-Identifier: GPL-2.0-or-later
//
// Settings of VEX and of the core's translation table that replace their defaults. The figures are those of
// docs/performance.md. And code that counts the program's instructions. See translation.h.

#include "host/valgrind/translation.h"
#include "base/clock.h"

// Superblocks of the default 60 guest instructions make oneDNN's and NumPy's loops translate badly: 20 halves the time
// of training on the CPU and costs nothing elsewhere. Superblocks that go on behind jumps and calls are off too: they
// translate the code there again for each place that leads to it, a quarter of all code in `import torch`.
#define MAX_INSNS 20

// The core keeps translations in sectors and discards the oldest sector when all are full. A PyTorch script fills eight
// of its 32, 13 MB each, with code that mostly ran once; and each failed look-up searches all of them. Six sectors hold
// 190,000 superblocks, two hold 64,000.
#define SECTORS     6
#define FEW_SECTORS 2

// A sector's tables have a slot per superblock, 6 MB for the core's 65521 slots. The core of bundles and packages lets
// the tool set the number (packaging/valgrind/patches). With four small sectors the core discards the oldest quarter,
// not the older half.
#define FEW_SLOTS     16381 // a prime
#define SMALL_SECTORS 4
extern UInt VG_(transtab_slots) __attribute__((weak));

// Bytes of host code that the core reserves per entry of a sector's hash table. Superblocks have more (148 on x86-64),
// so a sector's code is full when its table is half full: at two thirds a look-up takes three times as many probes.
#define ENTRY_BYTES 108

void jm_translation_init(void)
{
    VG_(clo_vex_control).guest_max_insns = MAX_INSNS;
#if defined(HAVE_VEX_GUEST_CHASE)
    VG_(clo_vex_control).guest_chase = False;
#else
    VG_(clo_vex_control).guest_chase_thresh = 0;
#endif
    VG_(clo_num_transtab_sectors) = SECTORS;
    VG_(details_avg_translation_sizeB)(ENTRY_BYTES);
}

void jm_translation_keep_little(void)
{
    if (VG_(clo_num_transtab_sectors) != SECTORS)
        return;
    VG_(clo_num_transtab_sectors) = FEW_SECTORS;
    if (&VG_(transtab_slots)) {
        VG_(clo_num_transtab_sectors) = SMALL_SECTORS;
        VG_(transtab_slots) = FEW_SLOTS;
    }
}

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
