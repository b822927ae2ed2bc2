// SPDX-License-Identifier: GPL-2.0-or-later
//
// What tensors are for, by PyTorch's own objects: what modules have registered and optimizers are given is a parameter,
// what a tensor has as its .grad is a gradient, what an optimizer keeps is its state.
//
// The rules for stacks decide where an object leads to no memory: sparse gradients, parameters of TorchScript modules,
// and blocks whose addresses PyTorch does not report (up to 1.9).

#ifndef JM_TORCH_ROLES_H
#define JM_TORCH_ROLES_H

#include "base/compat.h"

// The program has set a mark, asked for a snapshot, or is about to end: what it says now is all that there is.
void jm_torch_hear_roles(void);

// A snapshot is due: likewise, if that costs little beside the run so far, and what is not said may come yet.
void jm_torch_hear_roles_in_passing(Bool in_full);

void jm_torch_stats(void); // tells what it keeps (stats.h)

#endif
