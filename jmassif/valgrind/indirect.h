// SPDX-License-Identifier: GPL-2.0-or-later
//
// Returns, and calls through a library's table of addresses. The core looks up where each indirect jump leads, 124
// million times in a second `import torch`, a tenth of its time. Half of them lead where they led the first time.

#ifndef JM_INDIRECT_H
#define JM_INDIRECT_H

#include "base/compat.h"

// Gives a superblock that is about to run a direct jump before its indirect one, taken when both lead to the same
// place; nothing if it ends otherwise, or if it cannot be told where it will lead. What is added needs none of VEX's
// passes.
void jm_indirect_foresee(IRSB *block);

#endif
