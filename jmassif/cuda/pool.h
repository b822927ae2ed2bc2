// SPDX-License-Identifier: GPL-2.0-or-later
//
// Stream-ordered pools, by their handles (cudaMallocAsync and its like). What a pool reserves and its blocks do not use
// is cache.

#ifndef JM_CUDA_POOL_H
#define JM_CUDA_POOL_H

#include "base/compat.h"

// A new block is made of a pool that is not known yet. Returns the pool that it is taken to be of; 0: of none.
UWord jm_pool_guess(ULong bytes);

// It is of this pool. `guessed` 0: it was taken to be of none.
void jm_pool_is_known(UWord guessed, UWord pool, ULong bytes);

// A block of the pool has ended.
void jm_pool_give_back(UWord pool, ULong bytes);

// What the pool says that it reserves.
void jm_pool_reserved(UWord pool, ULong reserved_bytes);

void jm_pool_destroyed(UWord pool);

// The first pool, or the next one after `pool`, that holds cache and can be asked about it. 0: none.
UWord jm_pool_next_caching(UWord pool);

// Of all pools.
void jm_pools_sums(ULong *used_bytes, ULong *reserved_bytes);

// A forked child has none of its parent's device memory.
void jm_pools_after_fork_in_child(void);

#endif
