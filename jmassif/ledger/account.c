// SPDX-License-Identifier: GPL-2.0-or-later
//
// Finds or opens the account of (stack, kind, owner). A node's heap account is at the node's place in a table; a hash
// index leads from the triple to the others, but those that differ in their role alone have a map. See account.h.

#include "ledger/account.h"
#include "base/map.h"
#include "base/table.h"
#include "base/text.h"
#include "host/host.h"
#include "trace/trace.h"

static AccountId overhead_of_owner[256];
static UInt n_own;

// An account that differs from another one in its role alone. account_index does not contain it.
typedef struct OfRole {
    struct OfRole *next; // MapNode
    UWord key;           // MapNode: the account with the role that the stack implies
    AccountId account;
    const HChar *role;
    struct OfRole *another; // next role of the same account
} OfRole;

static Map of_role = JM_MAP("jm.account");

static Table heap_accounts = JM_TABLE("jm.account", AccountId); // of KIND_HEAP, by node: nearly all, and most wanted

static Index account_index = JM_INDEX("jm.account"); // of all others

static const HChar *stacks_role(NodeId node)
{
    RoleId role = jm_stack_role(node);
    return jm_role_is_survivors(role) ? "temporary" : jm_role_name(role);
}

static AccountId open_account(NodeId node, Kind kind, OwnerId owner)
{
    AccountId id = jm_ledger_open(node, kind, owner);
    n_own += jm_text_equal(jm_owner_group(owner), "yours");
    jm_trace_account(id, node, kind, owner, jm_owner_name(owner));
    if (owner == JM_OWNER_TENSOR)
        jm_trace_role(id, stacks_role(node));
    return id;
}

static AccountId heap_account(NodeId node)
{
    while (heap_accounts.n <= node + 1)
        jm_table_add(&heap_accounts);
    AccountId *account = jm_table_at(&heap_accounts, node + 1);
    if (!*account)
        *account = open_account(node, KIND_HEAP, jm_stack_owner(node, OWNS_HOST));
    return *account;
}

AccountId jm_account_owned(NodeId node, Kind kind, OwnerId owner)
{
    jm_assert(kind != KIND_HEAP); // the stack implies their owner: use jm_account
    IndexSlot *slot = JM_INDEX_FIND(&account_index, jm_hash((ULong)node << 16 | (ULong)kind << 8 | owner), id,
                                    jm_ledger_is(id, node, kind) && jm_ledger_owner(id) == owner);
    return slot->entry ? slot->entry : jm_index_put(&account_index, slot, open_account(node, kind, owner));
}

AccountId jm_account_with_role(AccountId made_as, const HChar *role)
{
    AccountKey of = jm_ledger_key(made_as);
    if (jm_text_equal(role, stacks_role(of.node)))
        return made_as;
    OfRole *first = jm_map_find(&of_role, made_as);
    for (const OfRole *known = first; known; known = known->another)
        if (jm_text_equal(role, known->role))
            return known->account;
    OfRole *made = host_alloc_zeroed("jm.account", 1, sizeof *made);
    made->key = made_as;
    made->account = jm_ledger_open(of.node, of.kind, of.owner);
    made->role = role;
    if (first) {
        made->another = first->another;
        first->another = made;
    } else {
        jm_map_add(&of_role, made);
    }
    jm_trace_account(made->account, of.node, of.kind, of.owner, jm_owner_name(of.owner));
    jm_trace_role(made->account, role);
    return made->account;
}

Bool jm_account_is_tensor(AccountId account)
{
    return account && jm_ledger_owner(account) == JM_OWNER_TENSOR;
}

AccountId jm_account_handed_out(NodeId node, Kind kind)
{
    OwnerId named = jm_owner_by_name(jm_role_name(jm_stack_role(node)));
    return jm_account_owned(node, kind, named == JM_OWNER_UNKNOWN ? JM_OWNER_TENSOR : named);
}

// PyTorch without its cache calls cudaMalloc for each tensor, and reports no tensors.
static Bool is_uncached;

void jm_account_without_cache(Bool is_without)
{
    is_uncached = is_without;
}

AccountId jm_account(NodeId node, Kind kind)
{
    if (kind == KIND_HEAP)
        return heap_account(node);
    OwnerId owner = jm_stack_owner(node, jm_kind_side(kind) == SIDE_HOST ? OWNS_HOST : OWNS_DEVICE);
    // Pinned memory is host memory, but its owner follows the rules for device memory.
    if (kind == KIND_PINNED)
        owner = jm_stack_owner(node, OWNS_DEVICE);
    // With the driver's pool as the cache, or no cache, a framework hands out each allocation at once.
    if ((kind == KIND_POOL || is_uncached) && owner == JM_OWNER_CACHE)
        return jm_account_handed_out(node, kind);
    return jm_account_owned(node, kind, owner);
}

AccountId jm_account_overhead(AccountId heap_account)
{
    OwnerId owner = jm_ledger_owner(heap_account);
    if (!overhead_of_owner[owner])
        overhead_of_owner[owner] = jm_account_owned(0, KIND_HEAP_OVERHEAD, owner);
    return overhead_of_owner[owner];
}

UInt jm_account_n_own(void)
{
    return n_own;
}
