// SPDX-License-Identifier: GPL-2.0-or-later
//
// Unwinds a thread's stack.

#pragma once

#include "host/host.h"

// Deep enough for Python's default recursion limit of 1000, at three or four native frames per call.
#define JM_MAX_FRAMES 8192

// The module owns the arrays. They are valid until the next stack is unwound.
typedef struct {
    const Addr *ips; // code addresses, innermost first; callers' are return addresses minus one
    const Addr *sps; // each frame's stack pointer, then a terminating 0
    UInt n;          // at most JM_MAX_FRAMES
    UInt n_same;     // outermost frames that are unchanged since the thread's last walk
    UInt n_certain;  // innermost frames that were found without scanning the stack for return addresses
    Bool is_inside;  // the call that `caller` makes is still in progress
} Walk;

// The caller of a call in progress, with its callers: they wait, so none changes until the call ends.
typedef struct {
    Addr ip, sp;
    UInt n; // frames, its own included; 0: unknown
} Waiting;

// Unwinds from the thread's registers, or from a frame further out that is still in progress; NULL: the former.
// `caller`: of the innermost call that is thought to be in progress, made by a function of a preload library; or NULL.
Walk jm_unwind(ThreadId tid, const HostFrameRegisters *from, const Waiting *caller);

// Call after code was unmapped: drops all rules and last walks.
void jm_unwind_forget(void);

// Call after a mapping was added, removed or reprotected; `is_code`: added as, or made, executable. True if earlier
// stacks may contain addresses in it although it belonged to no file.
Bool jm_unwind_mapping_changed(Addr start, SizeT bytes, Bool is_code);
