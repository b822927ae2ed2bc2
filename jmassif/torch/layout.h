// SPDX-License-Identifier: GPL-2.0-or-later
//
// Where a PyTorch tensor has its memory, its gradient and its word on whether it is a leaf that is trained. It is read
// from the program's memory, and every read is checked.

#ifndef JM_TORCH_LAYOUT_H
#define JM_TORCH_LAYOUT_H

#include "base/compat.h"

typedef struct {
    Bool has_storage; // sparse ones have other tensors instead
    Addr data;        // of its storage: the block that the allocator handed out; 0: there are no elements
    Bool is_cuda;
    Bool is_leaf;  // that wants gradients
    Addr gradient; // its c10::TensorImpl; 0: none
} TorchTensor;

// The c10::TensorImpl of a Python tensor; 0: none.
Addr jm_torch_impl(Addr python_tensor);

void jm_torch_read(Addr impl, TorchTensor *tensor);

#endif
