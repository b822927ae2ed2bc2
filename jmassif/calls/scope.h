// SPDX-License-Identifier: GPL-2.0-or-later
//
// API calls in progress, for each thread. A scope records the time and stack of its call and the memory that its thread
// allocated inside, by kind. Two features use it: the start-up waterfall (the cost of cuInit, a context, cudnnCreate),
// and the completion of stacks that break inside a vendor's library.

#pragma once

#include "attribution/kind.h"
#include "stack/stack.h"

// Enter a call at the thread's stack pointer, which shows later whether longjmp or an exception has left it. `name` is
// a trace string id. With `is_told`, jm_scope_leave() writes a record or adds to the sum of the name. Otherwise the
// call's stack is captured only when memory inside it needs it: most calls launch kernels and allocate nothing.
void jm_scope_enter(ThreadId tid, UInt name, Bool is_told);

// Leave the innermost call of that name. Calls inside it are dropped without a record, and so is one that has not ended
// but failed by a jump.
void jm_scope_leave(ThreadId tid, UInt name, Bool has_ended);

UInt jm_scope_depth(ThreadId tid);

// Id of the innermost call; 0 outside of all calls. Ids increase with the time of entry.
UInt jm_scope_current(ThreadId tid);

// Stack of the innermost call, captured if it has not been; 0 outside of all calls.
NodeId jm_scope_node(ThreadId tid);

// Capture the thread's stack. If it breaks, complete it from the innermost scope.
NodeId jm_scope_capture(ThreadId tid, Bool *ignored);

// Add memory that the thread allocated (positive) or freed (negative).
void jm_scope_grow(ThreadId tid, Kind kind, Long bytes, Long blocks);

// Marks of the innermost scope: a block of the kind has been allocated, freed, or refused. They pass to the enclosing
// scope when it ends: of a runtime call and the driver call in it, which report the same block, only one counts.
#define SCOPE_MADE(kind) (1u << (kind))
#define SCOPE_FREED      (1u << N_KINDS)
#define SCOPE_FAILED     (2u << N_KINDS) // out of memory
#define SCOPE_COPIED     (4u << N_KINDS) // its copy is recorded
void jm_scope_mark(ThreadId tid, UInt marks);
Bool jm_scope_has(ThreadId tid, UInt mark);

// Write the sums of calls that are too frequent for records of their own.
void jm_scope_write_sums(void);
