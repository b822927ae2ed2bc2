// SPDX-License-Identifier: GPL-2.0-or-later
//
// Tensors whose role is pending. What a backward pass makes is a parameter's gradient only if it outlives the pass:
// PyTorch does not copy a gradient to where it belongs, it keeps the block that some kernel of the pass has filled,
// beside others of its kind that die on the way. So too an optimiser's step. Where a rule in owners.rules is marked
// `survivors`, what is made in its frames is in an account with the role `temporary` at first; what still lives when
// its thread, or another one, is seen outside of such frames moves to an account with the rule's role, in the peaks
// that have seen it too.

#ifndef JM_PENDING_H
#define JM_PENDING_H

#include "ledger/ledger.h"
#include "stack/stack.h"

// Tells a block's keeper its new account. Returns whether its allocation has a record in the trace.
typedef Bool (*MoveBlock)(Addr address, AccountId to);

// After a tensor's block was credited to an account.
void jm_pending_made(Addr address, ULong bytes, AccountId account, MoveBlock move);

// Before a tensor's block is debited: its account may become another one now.
void jm_pending_ends(ThreadId tid, Addr address);

// The same, without a look at where the program is.
void jm_pending_forget(Addr address);

// The thread is where it is: passes that it is not in are over.
void jm_pending_settle(ThreadId tid);

// The program is over.
void jm_pending_settle_all(void);

void jm_pending_stats(void); // tells what it keeps (stats.h)

#endif
