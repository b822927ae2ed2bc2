// SPDX-License-Identifier: GPL-2.0-or-later
//
// Questions to the CUDA API: which context is current, what a pool holds in reserve, how large an import is. Only the
// API knows, and only the program can call it, so the wrapper that has reported a call is given a function of the
// program's own libraries to call before it returns (preload/protocol.h). One answer may lead to the next question.
//
// What returns Bool here tells whether there is now a question for the wrapper: False if the library has no such
// function, or nothing needs to be known.

#ifndef JM_CUDA_QUERY_H
#define JM_CUDA_QUERY_H

#include "base/compat.h"
#include "cuda/api.h"

// What is asked from now on by the thread is about this call, and nothing yet.
void jm_query_begin(const CudaCall *call);

// A block, or host memory that is registered, is new.
typedef struct {
    UWord key;
    UWord pool;       // 0: of none that is known
    Bool is_async;    // it is of the current device's current pool
    Bool is_imported; // its size is not known
} QuerySubject;

// The owner; then the pool's reserve, or how large it is.
Bool jm_query_block(const CudaCall *call, QuerySubject subject);

// What the pool holds in reserve.
Bool jm_query_pool(const CudaCall *call, UWord pool);

// What those pools do that have held something, one after the other.
Bool jm_query_caching_pools(const CudaCall *call);

// Whether the device shares the host's memory, unless that is known.
Bool jm_query_integrated(const CudaCall *call);

// How much of the device's memory is free, and how much it has: of the thread's event of running out,
Bool jm_query_room_for_event(const CudaCall *call);

// or of the machine, after the questions that the call has, if it `has_others`.
Bool jm_query_room(const CudaCall *call, Bool has_others);

// What was known of a library's functions there is forgotten.
void jm_query_unmapped(Addr start, SizeT bytes);

// The wrapper has called what it was given.
Bool jm_query_answered(ThreadId tid, struct jm_queries *queries);

// The device has memory of its own, which no figure of the machine's tells. False as long as that is not known.
Bool jm_query_is_discrete(void);

// Whether device memory is another pool than the host's, as far as is known or the user has said.
Bool jm_query_is_apart(void);

#endif
