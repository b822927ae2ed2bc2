// SPDX-License-Identifier: GPL-2.0-or-later
//
// Queries of the CUDA API: the current context, a pool's reserve, the size of an import. Only the API knows these, and
// only the program can call it. So the wrapper that has reported a call gets a function of the program's own libraries
// to call before it returns (preload/protocol.h). One answer may lead to the next query.
//
// A function that takes a call sets up a query for the wrapper, at most one: call->queries->n. There is none if the
// library lacks the function, or if nothing needs to be known. Sizes are in bytes.

#pragma once

#include "cuda/api.h"

// Starts a new set of queries for the call's thread.
void jm_query_begin(const CudaCall *call);

// Subject of queries: a new block.
typedef struct {
    UWord key;
    UWord pool;       // 0: none, or not known
    Bool is_async;    // the block is of the current device's current pool
    Bool is_imported; // the size is not known
} QuerySubject;

// Queries the block's context, then its pool's reserve or its size.
void jm_query_block(const CudaCall *call, QuerySubject subject);

// Queries the pool's reserve.
void jm_query_pool(const CudaCall *call, UWord pool);

// Queries the reserve of each pool that holds cache, one after another.
void jm_query_caching_pools(const CudaCall *call);

// Queries whether the device shares the host's memory, unless that is known.
void jm_query_integrated(const CudaCall *call);

// Queries the device's free and total memory, for the thread's out-of-memory event.
void jm_query_room_for_event(const CudaCall *call);

// The same for the machine's figures, after the call's other query if there is one.
void jm_query_room(const CudaCall *call);

// Drops cached addresses of functions in an unmapped range.
void jm_query_unmapped(Addr start, SizeT bytes);

// Handles the answer from the wrapper, and may prepare the next query. True if there is one.
Bool jm_query_answered(ThreadId tid, struct jm_queries *queries);
