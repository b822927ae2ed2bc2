// SPDX-License-Identifier: GPL-2.0-or-later
//
// Bytes that are in host memory and in a device copy. The CUDA source reports copies by base/hooks.h, and the sources
// of memory report what ends. A pair of source and copy ends when either side is freed or unmapped, when another copy
// overwrites the device's, and when its source has changed since. Writes by kernels are not seen. Sizes are in bytes.

#ifndef JM_COPIES_H
#define JM_COPIES_H

#include "base/hooks.h"

void jm_copies_copied(ThreadId tid, const CopiedBytes *copied);

// Host memory is pinned; `bytes` 0: no longer.
void jm_copies_registered(ThreadId tid, Addr start, ULong bytes);

// A heap block of at least JM_LEAST_COPY begins.
void jm_copies_block(Addr start, ULong bytes);

// Memory at these addresses, of either side, ends. It may be gone already.
void jm_copies_ended(Addr start, ULong bytes);

// Before a snapshot: ends pairs with changed sources, unless the last look was so recent that it would exceed 0.1 % of
// the run. `in_full`: look anyway.
void jm_copies_verify(Bool in_full);

void jm_copies_write(void);
void jm_copies_after_fork_in_child(void);

#endif
