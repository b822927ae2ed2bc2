// SPDX-License-Identifier: GPL-2.0-or-later
//
// The CUDA source: effects on memory of the wrapped calls of preload/cuda_api.def.

#pragma once

#include "host/types.h"

// Handles a request of preload/protocol.h. False if it is not one of CUDA's. Invalid requests are counted.
Bool jm_cuda_handle_request(ThreadId tid, UWord *args, UWord *result);

// An interpreter begins to free what it holds. Ignored inside a wrapped call that ends one.
void jm_cuda_program_ends(ThreadId tid);

void jm_cuda_write_counters(void);
