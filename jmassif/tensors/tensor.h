// SPDX-License-Identifier: GPL-2.0-or-later
//
// The tensor source. A framework's caching allocator reports, for its own profiler, each part of a segment that it
// hands out. The segment was credited to the owner `cache` when it was allocated; a tensor inside it is a transfer out
// of that account, and back when the tensor dies. So segments are always tensors plus cache, to the byte.

#ifndef JM_TENSOR_H
#define JM_TENSOR_H

#include "host/types.h"

struct DeviceBlock;

// A report of PyTorch to its profiler: (address, bytes[, allocated, reserved], device), negative bytes for a free. The
// device is in words[device_word]. Up to 1.9 the address is another number, the same in the report of the free.
void jm_tensor_reported(ThreadId tid, const UWord *words, UInt device_word);

// Reports of an allocator that gives the exact address, such as TensorFlow's. Blocks outside of segments are ignored.
void jm_tensor_handed_out(ThreadId tid, Addr address, ULong bytes);
void jm_tensor_taken_back(ThreadId tid, Addr address);

// A report of a custom allocator in the program (jmassif.h). A device block with such a part becomes a segment.
void jm_tensor_handed_out_by_program(ThreadId tid, Addr address, ULong bytes);

// Handles a segment that ends under its tensors.
void jm_tensor_segment_ended(struct DeviceBlock *segment);

void jm_tensor_write_counters(void);

#endif
