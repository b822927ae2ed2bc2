// SPDX-License-Identifier: GPL-2.0-or-later
//
// The tensor source. A framework's caching allocator reports, for its own profiler, each part of a segment that it
// hands out. The segment was credited to the owner `cache` when it was allocated; a tensor inside it is a transfer out
// of that account, and back when the tensor dies. So segments are always tensors plus cache, to the byte.

#ifndef JM_TENSOR_H
#define JM_TENSOR_H

#include "host/types.h"

typedef struct {
    Addr address;  // in PyTorch up to 1.9, another number, the same in the report of the free
    Long bytes;    // positive: allocated; negative: freed
    Bool is_exact; // the address is the block's own; a block outside of segments is ignored
    Bool has_totals;
    ULong total_allocated; // bytes of the device, as the framework counts them
    ULong total_reserved;
    Int device;
} TensorReport;

void jm_tensor_report(ThreadId tid, const TensorReport *report);

// Reports of a custom allocator in the program (jmassif.h). A device block with such a part becomes a segment.
void jm_tensor_handed_out(ThreadId tid, Addr address, ULong bytes);
void jm_tensor_taken_back(ThreadId tid, Addr address);

void jm_tensor_write_counters(void);

void jm_tensor_stats(void); // rows for --stats=yes

#endif
