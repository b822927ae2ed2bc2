// SPDX-License-Identifier: GPL-2.0-or-later
//
// Keeps the live tensors by address, and a list of those, a few hundred at a time, that wait for the end of a pass; see
// live_tensors.h. Nothing signals the end of a pass. It is inferred when a tensor is created or freed, or a mark is
// set, by a stack without the pass's frames.

#include "ledger/live_tensors.h"
#include "attribution/owner.h"
#include "base/clock.h"
#include "base/hooks.h"
#include "base/list.h"
#include "base/text.h"
#include "calls/scope.h"
#include "host/host.h"
#include "trace/trace.h"

typedef struct LiveTensor {
    struct LiveTensor *next; // MapNode
    UWord key;               // MapNode: address
    ULong bytes;
    ULong born;           // jm_ledger_n_changes()
    AccountId created_as; // the account that its stack implies
    AccountId account;
    RoleId rule;    // that its stack implies
    UChar observed; // strongest role since jm_live_tensors_observe_begin
    Bool is_traced;
    Bool is_waiting;
    struct LiveTensor *newer, *older; // list of tensors that wait for the end of a pass
} LiveTensor;

Map jm_live_tensors = JM_MAP("jm.live_tensors");
static LiveTensor *newest_waiting;
static ULong n_created;

static void wait_no_more(LiveTensor *t)
{
    if (!t->is_waiting)
        return;
    JM_LIST_REMOVE(newest_waiting, t, older, newer);
    t->is_waiting = False;
}

static void move_to(LiveTensor *t, AccountId to)
{
    wait_no_more(t);
    if (to == t->account)
        return;
    jm_ledger_move(t->account, to, t->bytes, t->born);
    if (t->is_traced) {
        ULong now = jm_clock_now();
        jm_trace_block_end(now, t->key, t->account);
        jm_trace_block(now, t->key, t->bytes, to);
    }
    t->account = to;
}

static void reclassify(LiveTensor *t, const HChar *role)
{
    move_to(t, jm_account_with_role(t->created_as, role));
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
            reclassify(t, jm_role_name(t->rule));
    }
}

static void settle_at(ThreadId tid)
{
    Bool ignored;
    if (newest_waiting)
        settle(jm_scope_capture(tid, &ignored));
}

// Finds a tensor, but not another block at its address.
static LiveTensor *find_created(Addr address, AccountId created_as)
{
    LiveTensor *t = jm_account_is_tensor(created_as) ? jm_map_find(&jm_live_tensors, address) : NULL;
    return t && t->created_as == created_as ? t : NULL;
}

static AccountId drop(LiveTensor *t)
{
    AccountId account = t->account;
    wait_no_more(t);
    host_free(jm_map_remove(&jm_live_tensors, t->key));
    return account;
}

void jm_live_tensor_begin(Addr address, ULong bytes, AccountId created_as, Bool is_traced)
{
    UInt node = jm_ledger_key(created_as).node;
    if (newest_waiting)
        settle(node);
    LiveTensor *t = jm_map_find(&jm_live_tensors, address);
    if (t) { // of another kind of memory: its source will debit the account at its creation
        move_to(t, t->created_as);
        drop(t);
    }
    t = host_alloc_zeroed("jm.live_tensors", 1, sizeof *t);
    t->key = address;
    t->bytes = bytes;
    t->born = jm_ledger_n_changes();
    t->created_as = t->account = created_as;
    t->rule = jm_stack_role(node);
    t->is_traced = is_traced;
    jm_map_add(&jm_live_tensors, t);
    n_created++;
    if (!jm_role_is_survivors(t->rule))
        return;
    t->is_waiting = True;
    JM_LIST_ADD(newest_waiting, t, older, newer);
}

AccountId jm_live_tensor_account(Addr address, AccountId created_as)
{
    const LiveTensor *t = find_created(address, created_as);
    return t ? t->account : created_as;
}

AccountId jm_live_tensor_forget(Addr address, AccountId created_as)
{
    LiveTensor *t = find_created(address, created_as);
    return t ? drop(t) : created_as;
}

AccountId jm_live_tensor_ended(ThreadId tid, Addr address, AccountId created_as)
{
    LiveTensor *t = find_created(address, created_as);
    if (!t)
        return created_as;
    if (t->is_waiting)
        settle_at(tid);
    return drop(t);
}

void jm_live_tensors_settle(ThreadId tid)
{
    settle_at(tid);
    jm_hooks.observe_roles();
}

void jm_live_tensors_settle_all(void)
{
    settle(0);
}

ULong jm_live_tensors_n_created(void)
{
    return n_created;
}

static const HChar *const observed_names[] = {
    [OBSERVED_OPTIMIZER] = "optimizer", [OBSERVED_GRADIENT] = "gradient", [OBSERVED_PARAMETER] = "parameter"};

void jm_live_tensors_observe_begin(void)
{
    for (LiveTensor *t = NULL; (t = jm_map_next(&jm_live_tensors, t));)
        t->observed = OBSERVED_NOTHING;
}

Bool jm_live_tensor_observed(Addr address, ObservedRole role)
{
    LiveTensor *t = address ? jm_map_find(&jm_live_tensors, address) : NULL;
    if (t && t->observed < role)
        t->observed = role;
    return t != NULL;
}

static ObservedRole role_by_rule(const LiveTensor *t)
{
    for (UInt role = OBSERVED_OPTIMIZER; role <= OBSERVED_PARAMETER; role++)
        if (jm_text_equal(jm_role_name(t->rule), observed_names[role]))
            return role;
    return OBSERVED_NOTHING;
}

static void decide(LiveTensor *t, UInt complete)
{
    ObservedRole by_rule = role_by_rule(t);
    if (t->observed >= OBSERVED_OPTIMIZER)
        reclassify(t, observed_names[t->observed]);
    else if (t->is_waiting)
        return;
    else if (t->observed == OBSERVED_LEAF && (by_rule == OBSERVED_PARAMETER || t->rule == 0))
        reclassify(t, observed_names[OBSERVED_PARAMETER]);
    else if (by_rule != OBSERVED_NOTHING && (complete & (1u << by_rule)))
        // A parameter that only a rule claims is a copy of one; other unconfirmed tensors are left over from a pass.
        reclassify(t, by_rule == OBSERVED_PARAMETER ? "other" : "temporary");
    else if (by_rule == OBSERVED_NOTHING && complete)
        reclassify(t, jm_role_name(t->rule));
}

void jm_live_tensors_observe_end(UInt complete)
{
    for (LiveTensor *t = NULL; (t = jm_map_next(&jm_live_tensors, t));)
        decide(t, complete);
}
