// SPDX-License-Identifier: GPL-2.0-or-later
//
// Live tensors, because what one is for may be known later than it is made. Then its block moves to an account that
// differs in the role alone, in the peaks that have seen it too.
//
// What a backward pass makes is a parameter's gradient only if it outlives the pass: PyTorch does not copy a gradient
// to where it belongs, it keeps the block that some kernel of the pass has filled, beside others of its kind that die
// on the way. So too an optimiser's step. Where a rule in owners.rules is marked `survivors`, what is made in its
// frames is in an account with the role `temporary` at first; what still lives when its thread, or another one, is seen
// outside of such frames gets the rule's role.
//
// And the program's own objects may say what a tensor is for (torch/): they are heard from time to time. What they say
// goes before the rules.

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

// The program has come to a point that it, or its end, has chosen. The thread is where it is: passes that it is not in
// are over, and `hear` is called, which is set once, to listen to the program's objects.
void jm_pending_settle(ThreadId tid);
void jm_pending_on_settled(void (*hear)(void));

// The program is over.
void jm_pending_settle_all(void);

Bool jm_pending_has_tensors(void);
ULong jm_pending_n_made(void); // tensors, so far

// What an object says of a block. If several say something, the last of these counts.
typedef enum {
    HEARD_NOTHING,
    HEARD_LEAF, // a tensor that wants gradients: a parameter, unless a rule knows better
    HEARD_OPTIMIZER,
    HEARD_GRADIENT,
    HEARD_PARAMETER
} HeardRole;

// Between begin and end each block is named that has such a role. False: there is no tensor's block at the address.
void jm_pending_hear_begin(void);
Bool jm_pending_hear(Addr address, HeardRole role);

// `complete`: of which roles (1 << HEARD_…) all blocks have been named, so that no other has it, whatever the rules
// say.
void jm_pending_hear_end(UInt complete);

void jm_pending_stats(void); // tells what it keeps (stats.h)

#endif
