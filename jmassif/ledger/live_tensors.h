// SPDX-License-Identifier: GPL-2.0-or-later
//
// Live tensors, kept because a tensor's role may become known only after its creation. It is then reclassified: it
// moves to an account that differs in the role alone, also in the peaks that included it. Only this table has that
// account; a tensor's source keeps the account at its creation, and gets the current one from here.
//
// A tensor created in a backward pass is a parameter's gradient only if it outlives the pass: PyTorch does not copy a
// gradient into place, it keeps the block that a kernel of the pass filled, beside similar ones that die earlier. An
// optimiser's step works alike. For rules marked `survivors` in owners.rules, tensors created in the rule's frames
// start in an account with the role `temporary`; those that still live when their thread, or another one, is observed
// outside such frames get the rule's role.
//
// Roles observed on the program's own objects from time to time (tensors/roles.c) override rules.

#pragma once

#include "base/map.h"
#include "ledger/account.h"

extern Map jm_live_tensors; // by address; here for jm_live_tensor_end, which every free calls

static inline UInt jm_live_tensors_n(void)
{
    return jm_map_n(&jm_live_tensors);
}

// Call after a tensor's block was credited to an account. `is_traced`: its allocation has a record in the trace.
void jm_live_tensor_begin(Addr address, ULong bytes, AccountId created_as, Bool is_traced);

// Ends a tensor before its block is debited, and returns its account, which this may change.
AccountId jm_live_tensor_ended(ThreadId tid, Addr address, AccountId created_as);

// The same for any block: one that is no tensor keeps `created_as`.
static inline AccountId jm_live_tensor_end(ThreadId tid, Addr address, AccountId created_as)
{
    return jm_live_tensors_n() && jm_account_is_tensor(created_as) ? jm_live_tensor_ended(tid, address, created_as)
                                                                   : created_as;
}

// The same, but does not inspect the thread's stack.
AccountId jm_live_tensor_forget(Addr address, AccountId created_as);

// The account of a live block.
AccountId jm_live_tensor_account(Addr address, AccountId created_as);

// Call at a mark, a usage query and when the program starts to end. Ends the passes that the thread is not in, then has
// roles observed on the program's objects.
void jm_live_tensors_settle(ThreadId tid);

// Ends all passes, at the end of the program.
void jm_live_tensors_settle_all(void);

ULong jm_live_tensors_n_created(void); // so far

// Role of a block as observed on an object. If several apply, the last of these wins.
typedef enum {
    OBSERVED_NOTHING,
    OBSERVED_LEAF, // requires gradients: a parameter, unless a rule knows better
    OBSERVED_OPTIMIZER,
    OBSERVED_GRADIENT,
    OBSERVED_PARAMETER
} ObservedRole;

// Between begin and end, call jm_live_tensor_observed for each block with such a role. False: the address is not a
// tensor's block.
void jm_live_tensors_observe_begin(void);
Bool jm_live_tensor_observed(Addr address, ObservedRole role);

// `complete` is a set of roles (1 << OBSERVED_…) with all blocks observed: other tensors lose these roles, whatever the
// rules claim.
void jm_live_tensors_observe_end(UInt complete);
