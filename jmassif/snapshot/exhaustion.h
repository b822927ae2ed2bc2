// SPDX-License-Identifier: GPL-2.0-or-later
//
// Memory ran out: an allocation failed for lack of it. The trace then has an event (docs/trace-format.md, "Running
// out") and a snapshot of the same moment. A caching allocator that fails gives back what it does not need and tries
// again; what a thread tries next is joined to its event.
//
// A program may probe until it fails, a thousand times over: of each stack the first failures are told, then fewer and
// fewer. All of them are counted.

#ifndef JM_EXHAUSTION_H
#define JM_EXHAUSTION_H

#include "base/compat.h"
#include "base/kind.h"

// What a source knows at such a moment goes into the event: called with each that is told, to write figures of it.
void jm_exhaustion_on_event(void (*tell)(UInt event));

// The thread's call of `api` got no memory of that kind; the error is the API's code. `bytes` 0: not known. True if it
// has been told, so that figures of the event may follow.
Bool jm_exhaustion_failed(ThreadId tid, const HChar *api, UInt error, Kind kind, ULong bytes);

// A figure of the thread's last event that was told: bytes.
void jm_exhaustion_figure(ThreadId tid, const HChar *figure, ULong bytes);

// A call that asks for memory, made by the program and not inside of another, has ended. What it failed for is told
// already. The second try after a failed one of the same size is what PyTorch counts as a retry, of device memory
// (`is_counted`). A piece is one of several that are of use only when all are had.
void jm_exhaustion_tried(ThreadId tid, ULong bytes, Bool has_failed, Bool is_piece, Bool is_counted);

// They are: the thread maps them.
void jm_exhaustion_pieces_used(ThreadId tid);

// The framework gave up: it reported that it is out of memory, with what it was asked for, what its tensors use and
// what it has reserved.
void jm_exhaustion_framework(ThreadId tid, ULong bytes, ULong allocated_bytes, ULong reserved_bytes);

// mmap and mremap may fail for lack of memory.
void jm_exhaustion_after_syscall(ThreadId tid, UInt number, const UWord *args, SysRes res);

void jm_exhaustion_write_counters(void);

// The child of a fork has its own trace, in which nothing is told yet.
void jm_exhaustion_after_fork_in_child(void);

void jm_exhaustion_stats(void); // tells what it keeps (stats.h)

#endif
