// SPDX-License-Identifier: GPL-2.0-or-later
//
// The CUDA source: what the wrapped calls of preload/cuda_api.def do to memory.

#ifndef JM_CUDA_H
#define JM_CUDA_H

#include "base/compat.h"

// One of the requests of preload/protocol.h. False if it is none of them.
Bool jm_cuda_handle_request(ThreadId tid, UWord *args, UWord *result);

void jm_cuda_write_counters(void);

#endif
