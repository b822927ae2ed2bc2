// SPDX-License-Identifier: GPL-2.0-or-later
//
// Live tensors, kept because a tensor's role may become known only after its creation. Its block then moves to an
// account that differs in the role alone, also in the peaks that included it.
//
// A tensor created in a backward pass is a parameter's gradient only if it outlives the pass: PyTorch does not copy a
// gradient into place, it keeps the block that a kernel of the pass filled, beside similar ones that die earlier. An
// optimiser's step works alike. For rules marked `survivors` in owners.rules, tensors created in the rule's frames
// start in an account with the role `temporary`; those that still live when their thread, or another one, is observed
// outside such frames get the rule's role.
//
// Roles observed on the program's own objects from time to time (torch/) override rules.

#ifndef JM_PENDING_H
#define JM_PENDING_H

#include "ledger/ledger.h"
#include "stack/stack.h"

// Gives a block its new account in the module that owns the block. Returns True if its allocation has a record in the
// trace.
typedef Bool (*MoveBlock)(Addr address, AccountId to);

// Call after a tensor's block was credited to an account.
void jm_pending_made(Addr address, ULong bytes, AccountId account, MoveBlock move);

// Call before a tensor's block is debited: this may change its account.
void jm_pending_ends(ThreadId tid, Addr address);

// As jm_pending_ends, but does not inspect the thread's stack.
void jm_pending_forget(Addr address);

// Call at a mark, a usage query and when the program starts to end. Ends the passes that the thread is not in, then
// calls the callback, set once, which observes the program's objects.
void jm_pending_settle(ThreadId tid);
void jm_pending_on_settled(void (*hear)(void));

// Ends all passes, at the end of the program.
void jm_pending_settle_all(void);

Bool jm_pending_has_tensors(void);
ULong jm_pending_n_made(void); // tensors created so far

// Role of a block as observed on an object. If several apply, the last of these wins.
typedef enum {
    HEARD_NOTHING,
    HEARD_LEAF, // requires gradients: a parameter, unless a rule knows better
    HEARD_OPTIMIZER,
    HEARD_GRADIENT,
    HEARD_PARAMETER
} HeardRole;

// Between begin and end, call jm_pending_hear for each block with such a role. False: the address is not a tensor's
// block.
void jm_pending_hear_begin(void);
Bool jm_pending_hear(Addr address, HeardRole role);

// `complete` is a set of roles (1 << HEARD_…) with all blocks observed: other tensors lose these roles, whatever the
// rules claim.
void jm_pending_hear_end(UInt complete);

void jm_pending_stats(void); // writes sizes of tables (stats.h)

#endif
