// SPDX-License-Identifier: GPL-2.0-or-later
//
// The API calls that each thread is in. A scope knows when and where its call began and what its thread has allocated
// inside it, by kind: the start-up waterfall (what cuInit, a context, cudnnCreate cost) comes from here, and so do the
// outer frames of stacks that break inside a vendor's library.

#ifndef JM_SCOPE_H
#define JM_SCOPE_H

#include "base/compat.h"
#include "base/kind.h"
#include "stack/stack.h"

// Enters a call; `name` is a trace string id, `sp` the stack pointer, by which calls that were left by longjmp or an
// exception are found out. A record is written when a call that `is_told` ends. Captures the stack.
void jm_scope_enter(ThreadId tid, UInt name, Addr sp, Bool is_told);

// Leaves the innermost call of that name.
void jm_scope_leave(ThreadId tid, UInt name);

UInt jm_scope_depth(ThreadId tid);

// The innermost call's; those that begin later have larger ones. 0: the thread is in none.
UInt jm_scope_current(ThreadId tid);

// Captures the thread's stack, completed from the innermost scope where it breaks.
NodeId jm_scope_capture(ThreadId tid, Bool *ignored);

// Memory of the kind that the thread allocated (positive) or freed (negative).
void jm_scope_grow(ThreadId tid, Kind kind, Long bytes, Long blocks);

// Whether the innermost scope, or one nested in it, has already reported a block of the kind as made (freed): so that
// of a runtime call over a driver call only one counts.
void jm_scope_mark_made(ThreadId tid, Kind kind);
void jm_scope_mark_freed(ThreadId tid);
void jm_scope_mark_failed(ThreadId tid); // no memory was to be had
Bool jm_scope_has_made(ThreadId tid, Kind kind);
Bool jm_scope_has_freed(ThreadId tid);
Bool jm_scope_has_failed(ThreadId tid);

// Writes the sums of scopes that are called too often to be told one by one.
void jm_scope_write_sums(void);

void jm_scope_stats(void); // tells what it keeps (stats.h)

#endif
