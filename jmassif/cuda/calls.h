// SPDX-License-Identifier: GPL-2.0-or-later
//
// What calls of the wrapped functions do to memory. A function's row names its action, and cuda/actions.def says of
// each action what does it, what it asks for, and what else is particular about it.

#ifndef JM_CUDA_CALLS_H
#define JM_CUDA_CALLS_H

#include "base/compat.h"
#include "base/kind.h"
#include "cuda/api.h"

// What is particular about an action.
typedef enum {
    IS_TOLD = 1 << 0,         // its scope is worth a record: what start-up is made of, not each allocation
    IS_REPORT = 1 << 1,       // of a framework, no call of an API: it opens no scope and cannot fail
    RETURNS_POINTER = 1 << 2, // NULL is a failure; of the others, what is not 0
    LOADS_LIBRARY = 1 << 3,   // its scope is named by the file; not to find one is how Python searches, and no failure
    ENDS_PROGRAM = 1 << 4,    // a snapshot before the call; what it returns is no failure
    EVEN_IF_FAILED = 1 << 5,  // its handler is for calls that have failed too
    MOVES_MEMORY = 1 << 6,    // the device may have less or more left after it
    IS_TRIED_AGAIN = 1 << 7,  // an allocator that gets nothing makes room and calls it once more,
    COUNTS_AS_RETRY = 1 << 8, // which PyTorch counts, of device memory
    IS_PIECE = 1 << 9,        // it makes one of several pieces that are of use only when all are had
} ActionFlags;

Bool jm_calls_is(const CudaFunction *function, ActionFlags flag);

// Does what the call has done. True if there is a question to the wrapper (query.h).
Bool jm_calls_act(const CudaCall *call);

// What the call asks for; 0 bytes: not known.
typedef struct {
    Kind kind;
    ULong bytes;
} Requested;
Requested jm_calls_requested(const CudaCall *call);

// A stream is being captured. Then only a few functions may be called.
Bool jm_calls_is_capturing(void);

// A request that no wrapper makes, or a size that no device has.
void jm_calls_refuse(void);
ULong jm_calls_n_refused(void);

ULong jm_calls_n_unknown_frees(void);    // of pointers and handles that are no block's
ULong jm_calls_reserved_addresses(void); // bytes of address space, live

#endif
