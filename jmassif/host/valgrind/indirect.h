// SPDX-License-Identifier: GPL-2.0-or-later
//
// Direct jumps for returns, and for calls through a library's table of addresses. The core looks up the target of each
// indirect jump: 124 million times in the second run of `import torch`, a tenth of its time. Half of the jumps lead to
// the same target as the first time.

#ifndef JM_INDIRECT_H
#define JM_INDIRECT_H

#include "host/valgrind/compat.h"

// Add a direct jump before the indirect one of a superblock that is about to run; it is taken if both lead to the same
// place. A superblock that ends otherwise, or with an unknown target, stays as it is. VEX needs no pass over the added
// code.
void jm_indirect_foresee(IRSB *block);

#endif
