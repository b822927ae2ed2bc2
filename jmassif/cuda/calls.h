// SPDX-License-Identifier: GPL-2.0-or-later
//
// Effects of the wrapped functions on memory. A function's row names its action; cuda/actions.def gives each action a
// handler, the bytes that it requests, and flags.

#pragma once

#include "attribution/kind.h"
#include "cuda/api.h"

// Properties of an action.
typedef enum {
    IS_TOLD = 1 << 0,         // its scope is written to the trace: calls of start-up, not each allocation
    IS_REPORT = 1 << 1,       // a framework's report, not an API call: opens no scope and cannot fail
    RETURNS_POINTER = 1 << 2, // NULL is a failure; without this flag, any result but 0 is
    LOADS_LIBRARY = 1 << 3,   // its scope has the file's name; failures are not counted, as Python searches by trying
    ENDS_PROGRAM = 1 << 4,    // a snapshot precedes the call; no result is a failure
    EVEN_IF_FAILED = 1 << 5,  // its handler also runs after failed calls
    MOVES_MEMORY = 1 << 6,    // may change the device's free memory
    IS_TRIED_AGAIN = 1 << 7,  // when it fails, an allocator frees memory and calls it again,
    COUNTS_AS_RETRY = 1 << 8, // which PyTorch counts as a retry, for device memory
    IS_PIECE = 1 << 9,        // one chunk of a multi-chunk (VMM) allocation
    IS_COPY = 1 << 10,        // opens no scope if it is small: there may be thousands a second
} ActionFlags;

Bool jm_calls_is(const CudaFunction *function, ActionFlags flag);

// Records the effect of the call. There may be a query for the wrapper (query.h).
void jm_calls_act(const CudaCall *call);

// The memory that a call requests; 0 bytes: not known.
typedef struct {
    Kind kind;
    ULong bytes;
} Requested;
Requested jm_calls_requested(const CudaCall *call);

// True while a stream is being captured, when CUDA allows only a few functions.
Bool jm_calls_is_capturing(void);

// Counts an invalid request, or a size that no device has.
void jm_calls_refuse(void);

void jm_calls_write_counters(void);
