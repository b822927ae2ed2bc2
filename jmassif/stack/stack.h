// SPDX-License-Identifier: GPL-2.0-or-later
//
// Call stacks as paths in a trie. A node is a frame in the context of its callers. Paths start at the outermost frame,
// so common outer parts are stored once, and a whole stack is the id of its innermost node.

#pragma once

#include "attribution/owner.h"
#include "host/host.h"
#include "unwind/unwind.h"

typedef UInt NodeId; // starts at 1; 0 means no stack

// The known outer part of a stack. Vendors' libraries may lack unwind tables, so a stack that breaks inside them is
// completed with the stack of the API call in progress.
typedef struct {
    NodeId node;       // includes the wrapper's frame, since the wrapped function's may be lost
    NodeId outside;    // the stack that the call is made from, once a stack inside it has been whole; else 0
    Waiting caller;    // its frames; frames inside the call have lower stack pointers
    Addr outermost_ip; // the outermost frame
    Addr python;       // jm_python_innermost() at the call
} StackBase;

// Capture the thread's stack, without the allocator's own frames. `base` may be NULL. Sets `*ignored` if the innermost
// frame is one of --ignore-fn. Never fails: an unwinding error yields a short stack.
NodeId jm_stack_capture(ThreadId tid, StackBase *base, Bool *ignored);

// Capture a base: the stack of an API call's wrapper at these registers, with which it is still in progress. `outer`
// may be NULL. `is_late`: Python code may have been called inside since the call began.
void jm_stack_capture_base(ThreadId tid, const HostFrameRegisters *wrapper, StackBase *outer, Bool is_late,
                           StackBase *base);

// The stack with the mapped file as its innermost frame.
NodeId jm_stack_push_mapped(NodeId node, const HChar *path, Bool is_object);

OwnerId jm_stack_owner(NodeId node, Owned owned);
RoleId jm_stack_role(NodeId node);

// True if a frame's rule names the same role.
Bool jm_stack_has_role(NodeId node, RoleId role);

// Drop the threads' last stacks. Call it when code is unmapped.
void jm_stack_forget(void);

// Number of stacks completed from a base, for the counters at the end of the run.
ULong jm_stack_n_completed(void);
