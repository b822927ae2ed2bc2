// SPDX-License-Identifier: GPL-2.0-or-later
//
// Fused multiply-add by the processor. On x86-64 VEX computes each lane of an FMA instruction in software up to some
// release after 3.19: more than half of the time in the kernels of oneDNN and OpenBLAS. The processor's instruction
// gives the program's own result to the bit, also for NaNs and in every rounding mode. On arm64, and in later releases
// on x86-64 (3.24 does), VEX emits the instruction itself.

#ifndef JM_FMA_H
#define JM_FMA_H

#include "host/valgrind/compat.h"

// Return whether the processor has FMA and the architecture is one on which that helps.
Bool jm_fma_is_available(void);

// Return the block with its multiply-adds done by the processor; `in` itself if it contains no multiply-add, or if VEX
// emits the instruction for `host`.
IRSB *jm_fma_in_hardware(IRSB *in, const VexArchInfo *host);

#endif
