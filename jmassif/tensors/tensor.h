// SPDX-License-Identifier: GPL-2.0-or-later
//
// The tensor source. A framework's caching allocator reports, for its own profiler, each part of a segment that it
// hands out. The segment was credited to the owner `cache` when it was allocated; a tensor inside it is a transfer out
// of that account, and back when the tensor dies. So segments are always tensors plus cache, to the byte.

#pragma once

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

void jm_tensor_segment_ended(struct DeviceBlock *segment);

void jm_tensor_write_counters(void);

// Roles of tensors, observed on PyTorch's own objects: a parameter is registered with a module or given to an
// optimizer, a gradient is a tensor's .grad, and optimizer state is held by an optimizer.
//
// Rules for stacks decide where an object leads to no memory: sparse gradients, parameters of TorchScript modules, and
// blocks that PyTorch reports without their address (up to 1.9).

// Walks the objects at a mark, a requested snapshot or the program's end. Roles that are not observed are withdrawn.
void jm_torch_observe_roles(void);

// Walks the objects at other snapshots, if walks have cost little of the run so far. Withdraws no role: an object may
// get its role later.
void jm_torch_observe_roles_in_passing(Bool in_full);
