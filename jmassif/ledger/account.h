// SPDX-License-Identifier: GPL-2.0-or-later
//
// Finds the account of (stack, kind, owner), or opens it and writes it to the trace.

#pragma once

#include "ledger/ledger.h"
#include "stack/stack.h"

// Set while a framework's cache is off, so that it asks CUDA for each tensor.
void jm_account_without_cache(Bool is_without);

// Returns the account of the owner that the stack implies.
AccountId jm_account(NodeId node, Kind kind);

AccountId jm_account_owned(NodeId node, Kind kind, OwnerId owner);

// Returns the account of memory that a framework's allocator handed out. Its owner is `tensor`, unless the role rules
// name an owner, such as a library's workspace.
AccountId jm_account_handed_out(NodeId node, Kind kind);

// Returns the account of blocks of `made_as` that get another role. `role` is not copied: it must live on.
AccountId jm_account_with_role(AccountId made_as, const HChar *role);

Bool jm_account_is_tensor(AccountId account);

// Number of accounts of owners in the group "yours". A new one means a new allocation site of the program itself.
UInt jm_account_n_own(void);

// Returns the account of rounding and headers around `heap_account`'s blocks: one per owner, without a stack.
AccountId jm_account_overhead(AccountId heap_account);
