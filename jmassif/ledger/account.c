// SPDX-License-Identifier: GPL-2.0-or-later
//
// Finds or opens the account of (stack, kind, owner). A hash index leads from the triple to the account's id; accounts
// that differ in their role alone are in a table of their own. See account.h.

#include "ledger/account.h"
#include "base/map.h"
#include "base/table.h"
#include "base/text.h"
#include "host/host.h"
#include "trace/trace.h"

static NodeId newest; // newest node with an account
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

// Replaces the owner in the key of a heap account: the stack implies that owner, so malloc need not look it up.
#define STACKS_OWN JM_OWNER_NONE

static inline OwnerId key_owner(Kind kind, OwnerId owner)
{
    return kind == KIND_HEAP ? STACKS_OWN : owner;
}

static ULong key_hash(NodeId node, Kind kind, OwnerId owner)
{
    return jm_hash(((ULong)node << 16) | ((ULong)kind << 8) | key_owner(kind, owner));
}

static ULong account_hash_of(UInt id)
{
    AccountKey key = jm_ledger_key(id);
    return key_hash(key.node, key.kind, key.owner);
}

static Index account_index = JM_INDEX("jm.account", account_hash_of);

static const HChar *stacks_role(NodeId node)
{
    RoleId role = jm_stack_role(node);
    return jm_role_is_survivors(role) ? "temporary" : jm_role_name(role);
}

// `owner` is as in the key (key_owner).
static AccountId find_or_open(NodeId node, Kind kind, OwnerId owner)
{
    const Bool is_known = node <= newest;
    UInt *slot = JM_INDEX_FIND(&account_index, key_hash(node, kind, owner), id,
                               is_known && jm_ledger_is(id, node, kind) &&
                                   (owner == STACKS_OWN || jm_ledger_owner(id) == owner));
    if (*slot)
        return *slot;
    if (owner == STACKS_OWN)
        owner = jm_stack_owner(node, OWNS_HOST);
    newest = is_known ? newest : node;
    AccountId id = jm_index_put(&account_index, slot, jm_ledger_open(node, kind, owner));
    n_own += jm_text_equal(jm_owner_group(owner), "yours");
    jm_trace_account(id, node, kind, owner, jm_owner_name(owner));
    if (owner == JM_OWNER_TENSOR)
        jm_trace_role(id, stacks_role(node));
    return id;
}

AccountId jm_account_owned(NodeId node, Kind kind, OwnerId owner)
{
    jm_assert(kind != KIND_HEAP); // the stack implies their owner: use jm_account
    return find_or_open(node, kind, owner);
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
        return find_or_open(node, kind, STACKS_OWN);
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
