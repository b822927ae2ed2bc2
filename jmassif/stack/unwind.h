// SPDX-License-Identifier: GPL-2.0-or-later
//
// Unwinding a thread's stack. What the core's unwinder gives, several times faster: its result is the same, frame by
// frame, where the core does not lose its way.
//
// --check-unwinding=yes compares the two and counts stacks in the trace: all (unwound); those for which the core was
// asked (-by-core); longer ones than the core's, or beyond a frame that it cannot leave (-further); guesses of frames
// without a table that differ (-guessed); and other differences, each of which is a fault (-differently).

#ifndef JM_UNWIND_H
#define JM_UNWIND_H

#include "base/compat.h"

// Deep enough for Python recursion at its default limit of 1000, at three or four native frames a call.
#define JM_MAX_FRAMES 8192

// Holds until the next stack is unwound.
typedef struct {
    const Addr *ips; // code addresses, innermost first, callers' less one
    const Addr *sps; // each frame's stack pointer; behind the outermost's is 0
    UInt n;          // at most JM_MAX_FRAMES
    UInt n_same;     // so many of the outermost are those of the thread's last walk
    UInt n_certain;  // so many of the innermost were found without looking through the stack for return addresses
} Walk;

Walk jm_unwind(ThreadId tid);

// As VG_(get_StackTrace), of a thread in any state. `sps` and `fps` may be NULL. Slower, and remembers nothing.
UInt jm_unwind_any(ThreadId tid, Addr *ips, Addr *sps, Addr *fps, UInt max, Word first_ip_delta);

// Code was unmapped: what is known of it no longer holds.
void jm_unwind_forget(void);

// A mapping has come, gone or got another protection; as `is_code` it has come or is executable now. True if stacks may
// have gone through it though it was in no file.
Bool jm_unwind_mapping_changed(Addr start, SizeT bytes, Bool is_code);

void jm_unwind_write_counters(void);
void jm_unwind_stats(void); // tells what it keeps (stats.h)

#endif
