// SPDX-License-Identifier: GPL-2.0-or-later
//
// Use and reserve of pools; see pool.h. Blocks update a pool's use as they come and go, and queries update its reserve.
// The difference is on one account for all pools, with the owner `cache`.

#include "device/pool.h"
#include "base/array.h"
#include "driver/memory.h"
#include "host/host.h"
#include "ledger/account.h"

typedef struct {
    UWord pool;     // its handle
    ULong used;     // by blocks of this pool, known or guessed
    ULong reserved; // by the last query
    ULong cached;   // max(0, reserved - used), in the cache account
    ULong made;     // bytes of `cached` that are carved out of driver memory
    Carve *made_of;
    Bool is_destroyed; // lives on until its last block is freed
} Pool;

static Array pools = JM_ARRAY("jm.pools", Pool);

static Pool *pool_of(UWord pool)
{
    return jm_array_find_or_add(&pools, &(Pool){.pool = pool}, sizeof pool);
}

static void update_cache(Pool *p)
{
    if (p->is_destroyed && p->used == 0)
        p->reserved = 0;
    ULong cached = p->reserved > p->used ? p->reserved - p->used : 0;
    if (cached != p->cached) {
        ThreadId tid = host_thread();
        AccountId cache = jm_account_owned(0, KIND_POOL, JM_OWNER_CACHE);
        ULong own = p->cached - p->made + jm_driver_uncarve(tid, &p->made_of, cache);
        p->made = jm_driver_carve(tid, &p->made_of, cache, 0, cached, True);
        jm_ledger_adjust(cache, (Long)(cached - p->made) - (Long)own);
        p->cached = cached;
    }
}

// A block's pool is often known only after the block was opened. Until then its bytes must leave a pool's cache, or
// they would count twice and raise false peaks. So a new block is assumed to be of the pool that was used last.
static UWord last_pool;

UWord jm_pool_guess(ULong bytes)
{
    if (last_pool) {
        pool_of(last_pool)->used += bytes;
        update_cache(pool_of(last_pool));
    }
    return last_pool;
}

void jm_pool_is_known(UWord guessed, UWord pool, ULong bytes)
{
    last_pool = pool;
    if (guessed == pool)
        return;
    if (guessed) {
        pool_of(guessed)->used -= bytes;
        update_cache(pool_of(guessed));
    }
    pool_of(pool)->used += bytes;
}

void jm_pool_give_back(UWord pool, ULong bytes)
{
    Pool *p = pool_of(pool);
    p->used -= bytes < p->used ? bytes : p->used;
    update_cache(p);
}

void jm_pool_reserved(UWord pool, ULong reserved_bytes)
{
    Pool *p = pool_of(pool);
    p->reserved = reserved_bytes;
    p->is_destroyed = False; // a new pool may have got the handle
    update_cache(p);
}

void jm_pool_destroyed(UWord pool)
{
    Pool *p = pool_of(pool);
    p->is_destroyed = True;
    if (last_pool == pool)
        last_pool = 0;
    update_cache(p);
}

UWord jm_pool_next_caching(UWord pool)
{
    Bool is_behind = pool == 0;
    for (Word i = 0; i < jm_array_n(&pools); i++) {
        const Pool *p = jm_array_at(&pools, i);
        if (is_behind && p->cached && !p->is_destroyed)
            return p->pool;
        is_behind |= p->pool == pool;
    }
    return 0;
}

void jm_pools_sums(ULong *used_bytes, ULong *reserved_bytes)
{
    *used_bytes = *reserved_bytes = 0;
    for (Word i = 0; i < jm_array_n(&pools); i++) {
        const Pool *p = jm_array_at(&pools, i);
        *used_bytes += p->used;
        *reserved_bytes += p->reserved;
    }
}

void jm_pools_after_fork_in_child(void)
{
    for (Word i = 0; i < jm_array_n(&pools); i++) {
        Pool *p = jm_array_at(&pools, i);
        p->used = p->reserved = 0;
        update_cache(p);
    }
}
