// SPDX-License-Identifier: GPL-2.0-or-later
//
// Keeps the live tensors by address, and a list of those, a few hundred at a time, that wait for the end of a pass; see
// pending.h. Nothing signals the end of a pass. It is inferred when a tensor is created or freed, or a mark is set, by
// a stack without the pass's frames.

#include "tensors/pending.h"
#include "attribution/owner.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/stats.h"
#include "base/text.h"
#include "calls/scope.h"
#include "host/host.h"
#include "ledger/account.h"
#include "trace/trace.h"

typedef struct LiveTensor {
    struct LiveTensor *next; // MapNode
    UWord key;               // MapNode: address
    ULong bytes;
    ULong born;        // jm_ledger_n_changes()
    AccountId made_as; // the account that its stack implies
    AccountId account;
    RoleId rule; // that its stack implies
    UChar heard; // strongest role observed since jm_pending_hear_begin
    MoveBlock move;
    struct LiveTensor *newer, *older; // list of tensors that wait for the end of a pass
    Bool is_waiting;
} LiveTensor;

static Map *tensors;
static LiveTensor *newest_waiting;
static UInt n_waiting;
static ULong n_made;
static void (*hear_program)(void);

static UInt n_tensors(void)
{
    return tensors ? jm_map_n(tensors) : 0;
}

static void wait_for_end(LiveTensor *t)
{
    t->is_waiting = True;
    t->older = newest_waiting;
    if (newest_waiting)
        newest_waiting->newer = t;
    newest_waiting = t;
    n_waiting++;
}

static void wait_no_more(LiveTensor *t)
{
    if (!t->is_waiting)
        return;
    if (t->older)
        t->older->newer = t->newer;
    if (t->newer)
        t->newer->older = t->older;
    else
        newest_waiting = t->older;
    t->is_waiting = False;
    t->newer = t->older = NULL;
    n_waiting--;
}

static void become(LiveTensor *t, const HChar *role)
{
    AccountId to = jm_account_with_role(t->made_as, role);
    wait_no_more(t);
    if (to == t->account)
        return;
    jm_ledger_move(t->account, to, t->bytes, t->born);
    if (t->move(t->key, to)) {
        ULong now = jm_clock_now();
        jm_trace_block_end(now, t->key, t->account);
        jm_trace_block(now, t->key, t->bytes, to);
    }
    t->account = to;
}

// `node` is the stack observed last; 0 at the end of the program.
static void settle(NodeId node)
{
    RoleId inside = 0; // role of the previous block, if `node` is inside its pass
    for (LiveTensor *t = newest_waiting, *older; t; t = older) {
        older = t->older;
        if (t->rule == inside)
            continue;
        if (node && jm_stack_has_role(node, t->rule))
            inside = t->rule;
        else
            become(t, jm_role_name(t->rule));
    }
}

void jm_pending_made(Addr address, ULong bytes, AccountId account, MoveBlock move)
{
    UInt node;
    Kind kind;
    OwnerId owner;
    jm_ledger_describe(account, &node, &kind, &owner);
    if (n_waiting)
        settle(node);
    if (!tensors)
        tensors = jm_map_new("jm.pending");
    jm_pending_forget(address);
    LiveTensor *t = host_alloc_zeroed("jm.pending", 1, sizeof *t);
    t->key = address;
    t->bytes = bytes;
    t->born = jm_ledger_n_changes();
    t->made_as = t->account = account;
    t->rule = jm_stack_role(node);
    t->move = move;
    jm_map_add(tensors, t);
    n_made++;
    if (jm_role_is_survivors(t->rule))
        wait_for_end(t);
}

static void settle_at(ThreadId tid)
{
    Bool ignored;
    if (n_waiting)
        settle(jm_scope_capture(tid, &ignored));
}

void jm_pending_ends(ThreadId tid, Addr address)
{
    const LiveTensor *t = tensors ? jm_map_find(tensors, address) : NULL;
    if (t && t->is_waiting)
        settle_at(tid);
    jm_pending_forget(address);
}

void jm_pending_forget(Addr address)
{
    LiveTensor *t = tensors ? jm_map_remove(tensors, address) : NULL;
    if (!t)
        return;
    wait_no_more(t);
    host_free(t);
}

void jm_pending_on_settled(void (*hear)(void))
{
    hear_program = hear;
}

void jm_pending_settle(ThreadId tid)
{
    settle_at(tid);
    if (hear_program)
        hear_program();
}

void jm_pending_settle_all(void)
{
    settle(0);
}

// ---- roles observed on the program's objects -----------------------------------------------------------------

Bool jm_pending_has_tensors(void)
{
    return n_tensors() > 0;
}

ULong jm_pending_n_made(void)
{
    return n_made;
}

static const HChar *const heard_names[] = {
    [HEARD_OPTIMIZER] = "optimizer", [HEARD_GRADIENT] = "gradient", [HEARD_PARAMETER] = "parameter"};

// The table does not change meanwhile: `use` creates and frees no tensors.
static void each_tensor(void (*use)(LiveTensor *t, UInt complete), UInt complete)
{
    if (!n_tensors())
        return;
    for (LiveTensor *t = NULL; (t = jm_map_next(tensors, t));)
        use(t, complete);
}

static void unhear(LiveTensor *t, UInt unused)
{
    t->heard = HEARD_NOTHING;
}

void jm_pending_hear_begin(void)
{
    each_tensor(unhear, 0);
}

Bool jm_pending_hear(Addr address, HeardRole role)
{
    LiveTensor *t = tensors && address ? jm_map_find(tensors, address) : NULL;
    if (t && t->heard < role)
        t->heard = role;
    return t != NULL;
}

// A parameter that only a rule claims is a copy of one; other unconfirmed tensors are left over from a pass.
static const HChar *role_unheard(HeardRole by_rule)
{
    return by_rule == HEARD_PARAMETER ? "other" : "temporary";
}

static HeardRole role_by_rule(const LiveTensor *t)
{
    for (UInt role = HEARD_OPTIMIZER; role <= HEARD_PARAMETER; role++)
        if (jm_text_equal(jm_role_name(t->rule), heard_names[role]))
            return role;
    return HEARD_NOTHING;
}

static void decide(LiveTensor *t, UInt complete)
{
    HeardRole by_rule = role_by_rule(t);
    if (t->heard >= HEARD_OPTIMIZER)
        become(t, heard_names[t->heard]);
    else if (t->is_waiting)
        return;
    else if (t->heard == HEARD_LEAF && (by_rule == HEARD_PARAMETER || t->rule == 0))
        become(t, heard_names[HEARD_PARAMETER]);
    else if (by_rule != HEARD_NOTHING && (complete & (1u << by_rule)))
        become(t, role_unheard(by_rule));
    else if (by_rule == HEARD_NOTHING && complete)
        become(t, jm_role_name(t->rule));
}

void jm_pending_hear_end(UInt complete)
{
    each_tensor(decide, complete);
}

void jm_pending_stats(void)
{
    jm_stats_row("jm.pending", "live tensors, for their roles", n_tensors(), n_tensors() * sizeof(LiveTensor));
}
