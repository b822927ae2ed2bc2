// SPDX-License-Identifier: GPL-2.0-or-later
//
// The blocks whose role is not known yet, a few hundred at a time; see pending.h. That a pass is over is not told by
// anybody. It is seen when a tensor is made or freed, or a mark set, by a stack without the pass's frames.

#include "ledger/pending.h"
#include "ledger/account.h"
#include "base/clock.h"
#include "stack/owner.h"
#include "stack/scope.h"
#include "base/stats.h"
#include "trace/trace.h"

typedef struct PendingBlock {
    struct PendingBlock *next; // VgHashNode
    UWord key;                 // VgHashNode: its address
    ULong bytes;
    ULong born; // jm_ledger_n_changes()
    AccountId account;
    RoleId role; // that it will have if it survives
    MoveBlock move;
} PendingBlock;

static VgHashTable *blocks;

static UInt n_blocks(void)
{
    return blocks ? VG_(HT_count_nodes)(blocks) : 0;
}

static void survive(PendingBlock *b)
{
    AccountId to = jm_account_survivors(b->account);
    jm_ledger_move(b->account, to, b->bytes, b->born);
    if (b->move(b->key, to)) {
        ULong now = jm_clock_now();
        jm_trace_block_end(now, b->key, b->account);
        jm_trace_block(now, b->key, b->bytes, to);
    }
    VG_(HT_remove)(blocks, b->key);
    VG_(free)(b);
}

// `node`: the stack that was seen. 0: the program is over.
static void settle(NodeId node)
{
    UInt n;
    VgHashNode **all = VG_(HT_to_array)(blocks, &n);
    RoleId inside = 0; // of the block before, if the stack is in its pass
    for (UInt i = 0; i < n; i++) {
        PendingBlock *b = (PendingBlock *)all[i];
        if (b->role == inside)
            continue;
        if (node && jm_stack_has_role(node, b->role))
            inside = b->role;
        else
            survive(b);
    }
    if (all)
        VG_(free)(all);
}

void jm_pending_made(Addr address, ULong bytes, AccountId account, MoveBlock move)
{
    UInt node;
    Kind kind;
    OwnerId owner;
    jm_ledger_describe(account, &node, &kind, &owner);
    if (n_blocks())
        settle(node);
    RoleId role = jm_stack_role(node);
    if (!jm_role_is_survivors(role))
        return;
    if (!blocks)
        blocks = VG_(HT_construct)("jm.pending");
    jm_pending_forget(address);
    PendingBlock *b = VG_(calloc)("jm.pending", 1, sizeof *b);
    b->key = address;
    b->bytes = bytes;
    b->born = jm_ledger_n_changes();
    b->account = account;
    b->role = role;
    b->move = move;
    VG_(HT_add_node)(blocks, b);
}

void jm_pending_ends(ThreadId tid, Addr address)
{
    if (!n_blocks() || !VG_(HT_lookup)(blocks, address))
        return;
    jm_pending_settle(tid);
    jm_pending_forget(address);
}

void jm_pending_forget(Addr address)
{
    PendingBlock *b = blocks ? VG_(HT_remove)(blocks, address) : NULL;
    if (b)
        VG_(free)(b);
}

void jm_pending_settle(ThreadId tid)
{
    Bool ignored;
    if (n_blocks())
        settle(jm_scope_capture(tid, &ignored));
}

void jm_pending_settle_all(void)
{
    if (n_blocks())
        settle(0);
}

void jm_pending_stats(void)
{
    jm_stats_row("jm.pending", "blocks of unknown role", n_blocks(), n_blocks() * sizeof(PendingBlock));
}
