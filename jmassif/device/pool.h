// SPDX-License-Identifier: GPL-2.0-or-later
//
// Stream-ordered pools (cudaMallocAsync and its variants) by handle. The part of a pool's reserve that its blocks do
// not use is cache. Sizes are in bytes.

#ifndef JM_CUDA_POOL_H
#define JM_CUDA_POOL_H

#include "host/types.h"

// Adds a new block of an unknown pool to the pool that was used last, and returns that pool; 0: none.
UWord jm_pool_guess(ULong bytes);

// Moves a block from the guessed pool (0: none) to its real one.
void jm_pool_is_known(UWord guessed, UWord pool, ULong bytes);

// Removes a block that has ended.
void jm_pool_give_back(UWord pool, ULong bytes);

// Sets the pool's reserve, from a query.
void jm_pool_reserved(UWord pool, ULong reserved_bytes);

void jm_pool_destroyed(UWord pool);

// The first pool after `pool` (0: of all) that holds cache and still exists; 0: none. Iterates over pools to query.
UWord jm_pool_next_caching(UWord pool);

// Sums over all pools.
void jm_pools_sums(ULong *used_bytes, ULong *reserved_bytes);

// Clears pools in a forked child, which does not inherit device memory.
void jm_pools_after_fork_in_child(void);

#endif
