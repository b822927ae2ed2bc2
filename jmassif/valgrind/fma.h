// SPDX-License-Identifier: GPL-2.0-or-later
//
// Fused multiply-add by the processor. On x86-64 VEX up to some release after 3.19 computes each lane of an FMA
// instruction in software, which is more than half of the time in the kernels of oneDNN and OpenBLAS. Where the
// processor has the instruction, it does it: the result is the program's own to the bit, also for NaNs and in every
// rounding mode. On arm64 VEX does this itself, and so do later releases on x86-64: 3.24 does.

#ifndef JM_FMA_H
#define JM_FMA_H

#include "base/compat.h"

// Whether the processor has FMA, and this is an architecture on which that helps.
Bool jm_fma_is_available(void);

// The block with its multiply-adds done by the processor; `in` itself if it has none, or if VEX, which translates for
// `host`, will do so anyway.
IRSB *jm_fma_in_hardware(IRSB *in, const VexArchInfo *host);

#endif
