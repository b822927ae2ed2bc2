// SPDX-License-Identifier: GPL-2.0-or-later
//
// The memory of a PyTorch tensor, its gradient, and whether it is a trained leaf. All are read from the program's
// memory, and every read is checked.

#ifndef JM_TORCH_LAYOUT_H
#define JM_TORCH_LAYOUT_H

#include "host/types.h"

typedef struct {
    Bool has_storage; // False for sparse tensors, which consist of other tensors
    Addr data;        // of its storage: the block from the allocator; 0: no elements
    Bool is_cuda;
    Bool is_leaf;  // and requires gradients
    Addr gradient; // its c10::TensorImpl; 0: none
} TorchTensor;

// The c10::TensorImpl of a Python tensor; 0: none.
Addr jm_torch_impl(Addr python_tensor);

void jm_torch_read(Addr impl, TorchTensor *tensor);

#endif
