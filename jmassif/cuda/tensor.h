// SPDX-License-Identifier: GPL-2.0-or-later
//
// The tensor source: a framework's caching allocator says, through the report it makes for its own profiler, which part
// of a segment it hands out. The segment was credited to the owner `cache` when it was allocated; a tensor inside it is
// a transfer out of that account, and back when the tensor dies. So segments are always tensors plus cache, to the
// byte.

#ifndef JM_TENSOR_H
#define JM_TENSOR_H

#include "base/compat.h"

typedef struct {
    Addr address;  // or, in PyTorch up to 1.9, another number that is the same for the report of the free
    Long bytes;    // positive: handed out; negative: taken back
    Bool is_exact; // the address is the block's own, and blocks that lie in no segment are somebody else's
    Bool has_totals;
    ULong total_allocated; // of the device, as the framework counts
    ULong total_reserved;
    Int device;
} TensorReport;

void jm_tensor_report(ThreadId tid, const TensorReport *report);

// The program itself says so, of its own allocator: a block that it hands out parts of becomes a segment.
void jm_tensor_handed_out(ThreadId tid, Addr address, ULong bytes);
void jm_tensor_taken_back(ThreadId tid, Addr address);

void jm_tensor_write_counters(void);

void jm_tensor_stats(void); // tells what it keeps (stats.h)

#endif
