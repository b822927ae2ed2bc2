// SPDX-License-Identifier: GPL-2.0-or-later
//
// The CUDA source: what the wrapped calls of preload/cuda_api.def do to memory.

#ifndef JM_CUDA_H
#define JM_CUDA_H

#include "base/compat.h"

// Called when a dlopen of the thread is about to end, while its scope is still open. What the library has mapped is for
// another to measure.
void jm_cuda_on_library_loaded(void (*loaded)(ThreadId tid));

// One of the requests of preload/protocol.h. False if it is none of them.
Bool jm_cuda_handle_request(ThreadId tid, UWord *args, UWord *result);

void jm_cuda_write_counters(void);

#endif
