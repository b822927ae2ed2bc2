// SPDX-License-Identifier: GPL-2.0-or-later
//
// See translation.h. The figures are those of docs/performance.md.

#include "valgrind/translation.h"

// A superblock of the default 60 guest instructions makes oneDNN's and NumPy's loops translate badly: 20 halves the
// time of training on the CPU and costs nothing elsewhere. Nor do superblocks go on behind jumps and calls, into code
// that then is translated again for each place that leads there: a quarter of all in `import torch`.
#define MAX_INSNS 20

// The core keeps translations in sectors, and gives the oldest up when all are full. Of its 32 a PyTorch script fills
// eight, 13 MB each, with code that mostly ran once; and each look-up that fails goes through all of them. In six fit
// 190,000 superblocks, and in two 64,000.
#define SECTORS     6
#define FEW_SECTORS 2

// A sector's tables are for as many superblocks as they have slots, 6 MB for the core's 65521. In the core of bundles
// and packages the tool can say how many (packaging/valgrind/build). The oldest quarter is given up then, not the older
// half.
#define FEW_SLOTS     16381 // a prime
#define SMALL_SECTORS 4
extern UInt VG_(transtab_slots) __attribute__((weak));

// How many bytes of host code the core makes room for, for each entry of a sector's hash table. Less than the
// superblocks have (148 on x86-64), so that the sector is full of code when its table is half full: in one that is two
// thirds full a look-up takes three times as many probes.
#define ENTRY_BYTES 108

static IRSB *tidy(IRSB *block);

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
    VG_(needs_final_IR_tidy_pass)(tidy);
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

// ---- what VEX does for a tool that changes a superblock -------------------------------------------------------

// After the tool has had its turn, VEX checks the superblock, removes dead code, propagates constants, removes dead
// code again and checks once more: a tenth of a translation's time. A superblock that the tool gives back as it got it
// has come out of the same passes just before. Where configure found that the linker can lead VEX's calls of them here
// (--wrap), they are left out then. What the passes call each other within VEX's optimiser is not led anywhere.
//
// Before its turn VEX checks the superblock twice too, which changes nothing and holds its own work against its own
// rules: left out as well. What the tool has changed is checked.

// What VEX has in hand, from the tool's turn to its last.
static enum { BEFORE_OUR_TURN, UNTOUCHED, CHANGED } superblock;

void jm_translation_instrumented(const IRSB *in, const IRSB *out)
{
    superblock = in == out ? UNTOUCHED : CHANGED;
}

// The last time that a tool sees the superblock.
static IRSB *tidy(IRSB *block)
{
    superblock = BEFORE_OUR_TURN;
    return block;
}

#if defined(WRAPS_VEX_PASSES)

void __real_sanityCheckIRSB(const IRSB *block, const HChar *caller, Bool is_flat, IRType word);
void __wrap_sanityCheckIRSB(const IRSB *block, const HChar *caller, Bool is_flat, IRType word);
void __real_do_deadcode_BB(IRSB *block);
void __wrap_do_deadcode_BB(IRSB *block);
IRSB *__real_cprop_BB(IRSB *block);
IRSB *__wrap_cprop_BB(IRSB *block);

void __wrap_sanityCheckIRSB(const IRSB *block, const HChar *caller, Bool is_flat, IRType word)
{
    if (superblock == CHANGED)
        __real_sanityCheckIRSB(block, caller, is_flat, word);
}

void __wrap_do_deadcode_BB(IRSB *block)
{
    if (superblock != UNTOUCHED)
        __real_do_deadcode_BB(block);
}

IRSB *__wrap_cprop_BB(IRSB *block)
{
    return superblock == UNTOUCHED ? block : __real_cprop_BB(block);
}

#endif
