// SPDX-License-Identifier: GPL-2.0-or-later
//
// The stores are the superblock's last, so they are looked for from its end on. On the way lie its exits: behind each,
// condition codes must be dead for those that were stored before it to be.
//
// A signal's handler that looks at the condition codes of what it has interrupted sees older ones. (Of what a memory
// access has interrupted it may as well without us: VEX keeps the instruction's address and the stack and frame pointer
// up to date there, and nothing else unless it is asked to.)

#include "valgrind/dead_flags.h"

#if defined(VGA_amd64) && defined(WRAPS_VEX_PASSES)

#include "valgrind/mapped_code.h"
#include "valgrind/translation.h"
#include "valgrind/x86_flags.h"

#define MAX_PIECE  24 // bytes that are looked at in a row
#define MAX_PIECES 3  // from jump to jump

#define N_EXTENTS 3 // of VexGuestExtents

// Code that the superblock is in the end made of.
typedef struct {
    const NSegment *mapping;
    VexGuestExtents extents;
} Made;

// Code in files may change under --smc-check=all, and what a debugger may want to see under --vgdb=full.
static Bool can_be_left_out(void)
{
    return VG_(clo_smc_check) != JM_SMC_ALL &&
           VG_(clo_vex_control).iropt_register_updates_default <= VexRegUpdUnwindregsAtMemAccess;
}

static Bool add_extent(VexGuestExtents *extents, Addr start, UInt n_bytes)
{
    for (UInt i = 0; i < extents->n_used; i++) {
        const Addr end = extents->base[i] + extents->len[i];
        if (start < extents->base[i] || start > end)
            continue;
        if (start + n_bytes > end)
            extents->len[i] = start + n_bytes - extents->base[i];
        return True;
    }
    if (extents->n_used == N_EXTENTS)
        return False;
    extents->base[extents->n_used] = start;
    extents->len[extents->n_used++] = n_bytes;
    return True;
}

// Up to an instruction that sets or reads them, and its end. FLAGS_STAY: up to one that leads on to `*next`.
static FlagsEffect look_at_piece(Addr start, Addr *end, Addr *next)
{
    UInt length;
    for (Addr at = start; at < start + MAX_PIECE; at += length) {
        const UChar *code = (const UChar *)at;
        const Bool leads_on = jm_x86_leads_on(code, &length, next);
        const FlagsEffect effect = leads_on ? FLAGS_STAY : jm_x86_flags_effect(code, &length);
        *end = at + length;
        if (leads_on || effect != FLAGS_STAY)
            return effect;
    }
    return FLAGS_ARE_READ; // perhaps
}

static Bool are_dead_at(Made *made, Addr address)
{
    VexGuestExtents extents = made->extents;
    FlagsEffect effect = FLAGS_STAY;
    for (UInt i = 0; effect == FLAGS_STAY && i < MAX_PIECES; i++) {
        Addr end, next;
        if (!jm_mapped_code_can_read(made->mapping, extents.base[0], address, MAX_PIECE + JM_X86_LONGEST))
            return False;
        effect = look_at_piece(address, &end, &next);
        if (effect == FLAGS_ARE_READ || !add_extent(&extents, address, end - address))
            return False;
        address = next;
    }
    if (effect == FLAGS_ARE_SET)
        made->extents = extents;
    return effect == FLAGS_ARE_SET;
}

static Bool is_flags(Int offset)
{
    return offset >= (Int)offsetof(VexGuestAMD64State, guest_CC_OP) &&
           offset <= (Int)offsetof(VexGuestAMD64State, guest_CC_NDEP);
}

// What stands before the statement may be needed there.
static Bool needs_flags(const IRStmt *s, Made *made)
{
    switch (s->tag) {
    case Ist_Exit:
        return s->Ist.Exit.jk != Ijk_Boring || s->Ist.Exit.dst->tag != Ico_U64 ||
               !are_dead_at(made, s->Ist.Exit.dst->Ico.U64);
    case Ist_Dirty:
        return s->Ist.Dirty.details->nFxState > 0;
    case Ist_WrTmp:
        return s->Ist.WrTmp.data->tag == Iex_Get && is_flags(s->Ist.WrTmp.data->Iex.Get.offset);
    default:
        return False;
    }
}

static Bool stores_flags(const IRStmt *s)
{
    return s->tag == Ist_Put && is_flags(s->Ist.Put.offset);
}

static Bool has_flags(const IRSB *block)
{
    for (Int i = block->stmts_used - 1; i >= 0; i--)
        if (stores_flags(block->stmts[i]))
            return True;
    return False;
}

void jm_dead_flags_leave_out(IRSB *block, VexGuestExtents *extents)
{
    if ((block->jumpkind != Ijk_Boring && block->jumpkind != Ijk_Call) || block->next->tag != Iex_Const ||
        block->next->Iex.Const.con->tag != Ico_U64 || !has_flags(block) || !can_be_left_out())
        return;
    Made made = {jm_mapped_code(extents->base[0]), *extents};
    if (!made.mapping || !are_dead_at(&made, block->next->Iex.Const.con->Ico.U64))
        return;
    Bool any = False;
    for (Int i = block->stmts_used - 1; i >= 0 && !needs_flags(block->stmts[i], &made); i--)
        if (stores_flags(block->stmts[i])) {
            block->stmts[i] = IRStmt_NoOp();
            *extents = made.extents;
            any = True;
        }
    if (any)
        jm_translation_remove_dead_code(block);
}

#else

void jm_dead_flags_leave_out(IRSB *block, VexGuestExtents *extents) {}

#endif
