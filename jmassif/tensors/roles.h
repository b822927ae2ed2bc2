// SPDX-License-Identifier: GPL-2.0-or-later
//
// Roles of tensors, observed on PyTorch's own objects: a parameter is registered with a module or given to an
// optimizer, a gradient is a tensor's .grad, and optimizer state is held by an optimizer.
//
// Rules for stacks decide where an object leads to no memory: sparse gradients, parameters of TorchScript modules, and
// blocks that PyTorch reports without their address (up to 1.9).

#ifndef JM_TORCH_ROLES_H
#define JM_TORCH_ROLES_H

#include "host/types.h"

// Walks the objects at a mark, a requested snapshot or the program's end. Roles that are not observed are withdrawn.
void jm_torch_observe_roles(void);

// Walks the objects at other snapshots, if walks have cost little of the run so far. Withdraws no role: an object may
// get its role later.
void jm_torch_observe_roles_in_passing(Bool in_full);

#endif
