// SPDX-License-Identifier: GPL-2.0-or-later
//
// Call stacks as paths in a trie. A node is a frame in the context of its callers, stored outermost first, so shared
// outer parts are stored once and a whole stack is the id of its innermost node.

#ifndef JM_STACK_H
#define JM_STACK_H

#include "base/compat.h"
#include "stack/owner.h"

typedef UInt NodeId; // from 1; 0: no stack

// A stack that is known to lie further out: vendors' libraries may lack unwind tables, and a stack that breaks inside
// them is completed with that of the API call that the thread is in.
typedef struct {
    NodeId node;       // with the wrapper's own frame: the wrapped function's may be lost
    Addr sp;           // the wrapper's: frames of the call have lower ones
    Addr caller_ip;    // the first frame outside of the wrapper
    Addr outermost_ip; // the last frame of all
} StackBase;

// Captures the thread's stack now, without the allocator's own frames. `base` may be NULL. Sets `*ignored` if its
// innermost frame is one of --ignore-fn. Never fails: what cannot be unwound gives a short stack.
NodeId jm_stack_capture(ThreadId tid, const StackBase *base, Bool *ignored);

// Captures what stacks are completed from, in the wrapper that an API call goes through; `outer` may be NULL.
void jm_stack_capture_base(ThreadId tid, const StackBase *outer, StackBase *base);

// The stack with the file that it has mapped as its innermost frame.
NodeId jm_stack_push_mapped(NodeId node, const HChar *path, Bool is_object);

OwnerId jm_stack_host_owner(NodeId node);
OwnerId jm_stack_device_owner(NodeId node);
OwnerId jm_stack_driver_owner(NodeId node); // of what is committed below the API
RoleId jm_stack_role(NodeId node);

// Whether some frame's rule names the same role.
Bool jm_stack_has_role(NodeId node, RoleId role);

// Code was unmapped: what is remembered of the last stacks no longer holds.
void jm_stack_forget(void);

// Stacks that were completed from their base, for the end-of-run counters.
ULong jm_stack_n_completed(void);

void jm_stack_stats(void); // tells what it keeps (stats.h)

#endif
