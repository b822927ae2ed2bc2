// SPDX-License-Identifier: GPL-2.0-or-later
//
// Finds the account of (stack, kind, owner), or opens it and tells the trace.

#ifndef JM_ACCOUNT_H
#define JM_ACCOUNT_H

#include "ledger/ledger.h"
#include "stack/stack.h"

// Whether a framework was told to do without its cache, and asks CUDA for each tensor.
void jm_account_without_cache(Bool is_without);

// The account of the stack's own owner.
AccountId jm_account(NodeId node, Kind kind);

AccountId jm_account_owned(NodeId node, Kind kind, OwnerId owner);

// Memory that a framework's allocator handed out: a tensor's, or, where the rules for roles name an owner (a library's
// workspace), that owner's.
AccountId jm_account_handed_out(NodeId node, Kind kind);

// The account of those blocks of another one that turn out to have a role of their own. `role` must live on.
AccountId jm_account_with_role(AccountId made_as, const HChar *role);

Bool jm_account_is_tensor(AccountId account);

// How many accounts of the program's own memory there are: each is a new place that it comes from.
UInt jm_account_n_own(void);

// The account, one per owner and without a stack, of rounding and headers around `heap_account`'s blocks.
AccountId jm_account_overhead(AccountId heap_account);

void jm_account_stats(void); // tells what it keeps (stats.h)

#endif
