// SPDX-License-Identifier: GPL-2.0-or-later
//
// Out of memory: records failed allocations. The trace gets an event (docs/trace-format.md, "Running out") and a
// snapshot of the same moment. A caching allocator that fails frees its cache and tries again; the thread's next
// attempts are joined to the event.
//
// Some programs probe until an allocation fails, thousands of times. The first failures of each stack are recorded,
// later ones more and more rarely. All are counted.

#pragma once

#include "attribution/kind.h"

// Call when the thread's call of `api` got no memory of that kind. `error` is the API's code; `bytes` 0 means unknown.
// True if the failure was recorded, so that jm_exhaustion_figure may add to it.
Bool jm_exhaustion_failed(ThreadId tid, const HChar *api, UInt error, Kind kind, ULong bytes);

// Adds a figure, in bytes, to the thread's last event; ignored if its last failure was not recorded.
void jm_exhaustion_figure(ThreadId tid, const HChar *figure, ULong bytes);

// Call after an outermost allocation call of the program, with or without success; its failure has been recorded
// already. The second attempt after a failed one of the same size is a retry as PyTorch counts them, for device memory
// (`is_counted`). A piece is one chunk of a multi-chunk (VMM) allocation, so its success alone resolves no event.
void jm_exhaustion_tried(ThreadId tid, ULong bytes, Bool has_failed, Bool is_piece, Bool is_counted);

// Call when the thread maps its pieces: the multi-chunk allocation succeeded.
void jm_exhaustion_pieces_used(ThreadId tid);

// Call when a framework reports that it is out of memory. Bytes: its request, its tensors' memory, its reserved memory.
void jm_exhaustion_framework(ThreadId tid, ULong bytes, ULong allocated_bytes, ULong reserved_bytes);

// Call after system calls: records mmap and mremap that failed with ENOMEM.
void jm_exhaustion_after_syscall(ThreadId tid, UInt number, const UWord *args, Long res);

void jm_exhaustion_write_counters(void);

// A forked child's trace starts empty: forgets events, sites and counts.
void jm_exhaustion_after_fork_in_child(void);
