/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The stream-ordered allocator. A pool reserves memory from the board in chunks of 32 MiB and hands
 * out parts of them; a free gives the part back to the pool at once (no work is ever pending here),
 * and the pool gives idle chunks back to the board when it is trimmed, or at a synchronisation when it holds
 * more than its release threshold. Pools belong to the device and outlive contexts. */
#include <string.h>

#include "entry.h"

#define CHUNK_BYTES MIB(32)

static struct object *chosen_pool; /* NULL: the default one */

static struct object *pool_check(CUmemoryPool handle)
{
    struct object *pool = object_check(handle, POOL);
    return pool && !pool->u.in_pool.destroyed ? pool : NULL;
}

static bool chunk_new(struct object *pool, size_t bytes)
{
    size_t span = round_up(bytes, CHUNK_BYTES);
    uint64_t max = pool->u.in_pool.max;
    if (max && (span > max || pool->u.in_pool.reserved > max - span))
        return false;
    if (!region_new(pool, span))
        return false;
    pool->u.in_pool.reserved += span;
    if (pool->u.in_pool.reserved > pool->u.in_pool.reserved_high)
        pool->u.in_pool.reserved_high = pool->u.in_pool.reserved;
    live.pool_reserved_bytes += span;
    return true;
}

static void pool_trim(struct object *pool, uint64_t keep)
{
    struct object *next;
    for (struct object *chunk = pool->regions; chunk; chunk = next) {
        next = chunk->after;
        size_t span = chunk->span_bytes;
        if (!region_idle(chunk) || pool->u.in_pool.reserved - span < keep)
            continue;
        pool->u.in_pool.reserved -= span;
        live.pool_reserved_bytes -= span;
        region_end(pool, chunk);
    }
}

/* A destroyed pool goes when its last block has gone. */
static void pool_end_if_done(struct object *pool)
{
    if (!pool->u.in_pool.destroyed || pool->u.in_pool.n_blocks > 0)
        return;
    pool_trim(pool, 0);
    object_delete(pool);
}

void pools_release_idle(void)
{
    for (size_t i = 0; i < object_count(); i++) {
        struct object *pool = object_slot(i);
        if (pool->kind == POOL && pool->u.in_pool.reserved > pool->u.in_pool.release_threshold)
            pool_trim(pool, pool->u.in_pool.release_threshold);
    }
}

static CUresult block_new(CUdeviceptr *pointer, size_t bytes, struct object *pool, CUstream stream)
{
    TRY(stream_check(stream));
    if (!pointer || !pool || bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    size_t span = round_up(bytes, GRANULE_BYTES);
    struct object *block = region_take(pool, span);
    if (!block && !chunk_new(pool, span)) {
        /* The board is full: what the pool holds idle is given back first. */
        pool_trim(pool, 0);
        if (!chunk_new(pool, span))
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (!block)
        block = region_take(pool, span);
    if (!block)
        return CUDA_ERROR_OUT_OF_MEMORY;
    block->kind = POOL_BLOCK;
    block->bytes = bytes;
    block->u.in_block.pool = pool;
    map_insert(block);
    pool->u.in_pool.n_blocks++;
    pool->u.in_pool.used += span;
    if (pool->u.in_pool.used > pool->u.in_pool.used_high)
        pool->u.in_pool.used_high = pool->u.in_pool.used;
    live.pool_used_bytes += span;
    amount_add(&live.pool, bytes);
    *pointer = block->address;
    return CUDA_SUCCESS;
}

void pool_block_end(struct object *block)
{
    struct object *pool = block->u.in_block.pool;
    map_remove(block);
    amount_remove(&live.pool, block->bytes);
    live.pool_used_bytes -= block->span_bytes;
    pool->u.in_pool.used -= block->span_bytes;
    pool->u.in_pool.n_blocks--;
    region_give(block);
    pool_end_if_done(pool);
}

DRIVER_API(cuMemAllocAsync, 11020, (CUdeviceptr * pointer, size_t bytes, CUstream stream), (pointer, bytes, stream))
{
    return block_new(pointer, bytes, chosen_pool ? chosen_pool : default_pool, stream);
}

DRIVER_API(cuMemAllocAsync_ptsz, 11020, (CUdeviceptr * pointer, size_t bytes, CUstream stream),
           (pointer, bytes, stream))
{
    return do_cuMemAllocAsync(pointer, bytes, stream);
}

DRIVER_API(cuMemAllocFromPoolAsync, 11020, (CUdeviceptr * pointer, size_t bytes, CUmemoryPool pool, CUstream stream),
           (pointer, bytes, pool, stream))
{
    return block_new(pointer, bytes, pool_check(pool), stream);
}

DRIVER_API(cuMemAllocFromPoolAsync_ptsz, 11020,
           (CUdeviceptr * pointer, size_t bytes, CUmemoryPool pool, CUstream stream), (pointer, bytes, pool, stream))
{
    return block_new(pointer, bytes, pool_check(pool), stream);
}

DRIVER_API(cuMemFreeAsync, 11020, (CUdeviceptr pointer, CUstream stream), (pointer, stream))
{
    TRY(stream_check(stream));
    struct object *block = map_find(pointer);
    if (!block || (block->kind != POOL_BLOCK && block->kind != DEVICE && block->kind != MANAGED))
        return CUDA_ERROR_INVALID_VALUE;
    if (block->kind == POOL_BLOCK)
        pool_block_end(block);
    else
        memory_end(block);
    return CUDA_SUCCESS;
}

DRIVER_API(cuMemFreeAsync_ptsz, 11020, (CUdeviceptr pointer, CUstream stream), (pointer, stream))
{
    return do_cuMemFreeAsync(pointer, stream);
}

/* Pools themselves. */

DRIVER_API(cuMemPoolCreate, 11020, (CUmemoryPool * handle, const CUmemPoolProps *properties), (handle, properties))
{
    TRY(driver_started());
    if (!handle || !properties || properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE || properties->location.id != 0)
        return CUDA_ERROR_INVALID_VALUE;
    struct object *pool = object_new(POOL);
    if (!pool)
        return CUDA_ERROR_OUT_OF_MEMORY;
    pool->u.in_pool.max = properties->maxSize;
    *handle = (CUmemoryPool)pool;
    return CUDA_SUCCESS;
}

DRIVER_API(cuMemPoolDestroy, 11020, (CUmemoryPool handle), (handle))
{
    TRY(driver_started());
    struct object *pool = pool_check(handle);
    if (!pool || pool == default_pool)
        return CUDA_ERROR_INVALID_VALUE;
    if (pool == chosen_pool)
        chosen_pool = NULL;
    pool->u.in_pool.destroyed = true;
    pool_end_if_done(pool);
    return CUDA_SUCCESS;
}

DRIVER_API(cuMemPoolTrimTo, 11020, (CUmemoryPool handle, size_t bytes_to_keep), (handle, bytes_to_keep))
{
    TRY(driver_started());
    struct object *pool = pool_check(handle);
    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    pool_trim(pool, bytes_to_keep);
    return CUDA_SUCCESS;
}

static uint64_t *pool_number(struct object *pool, int attribute)
{
    switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        return &pool->u.in_pool.release_threshold;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        return &pool->u.in_pool.reserved;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        return &pool->u.in_pool.reserved_high;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        return &pool->u.in_pool.used;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        return &pool->u.in_pool.used_high;
    default:
        return NULL;
    }
}

static bool is_reuse_policy(int attribute)
{
    return attribute >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES &&
           attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

DRIVER_API(cuMemPoolGetAttribute, 11020, (CUmemoryPool handle, int attribute, void *value), (handle, attribute, value))
{
    TRY(driver_started());
    struct object *pool = pool_check(handle);
    if (!pool || !value)
        return CUDA_ERROR_INVALID_VALUE;
    /* Policies are on unless switched off, so what is kept is "off". */
    if (is_reuse_policy(attribute)) {
        *(int *)value = !pool->u.in_pool.reuse[attribute - 1];
        return CUDA_SUCCESS;
    }
    if (!pool_number(pool, attribute))
        return CUDA_ERROR_INVALID_VALUE;
    *(uint64_t *)value = *pool_number(pool, attribute);
    return CUDA_SUCCESS;
}

DRIVER_API(cuMemPoolSetAttribute, 11020, (CUmemoryPool handle, int attribute, void *value), (handle, attribute, value))
{
    TRY(driver_started());
    struct object *pool = pool_check(handle);
    if (!pool || !value)
        return CUDA_ERROR_INVALID_VALUE;
    if (is_reuse_policy(attribute)) {
        pool->u.in_pool.reuse[attribute - 1] = !*(int *)value;
        return CUDA_SUCCESS;
    }
    bool high = attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH || attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH;
    if (attribute != CU_MEMPOOL_ATTR_RELEASE_THRESHOLD && !(high && *(uint64_t *)value == 0))
        return CUDA_ERROR_INVALID_VALUE;
    *pool_number(pool, attribute) = *(uint64_t *)value;
    return CUDA_SUCCESS;
}

DRIVER_API(cuDeviceGetDefaultMemPool, 11020, (CUmemoryPool * pool, CUdevice device), (pool, device))
{
    TRY(device_check(device));
    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    *pool = (CUmemoryPool)default_pool;
    return CUDA_SUCCESS;
}

DRIVER_API(cuDeviceGetMemPool, 11020, (CUmemoryPool * pool, CUdevice device), (pool, device))
{
    TRY(device_check(device));
    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    *pool = (CUmemoryPool)(chosen_pool ? chosen_pool : default_pool);
    return CUDA_SUCCESS;
}

DRIVER_API(cuDeviceSetMemPool, 11020, (CUdevice device, CUmemoryPool handle), (device, handle))
{
    TRY(device_check(device));
    struct object *pool = pool_check(handle);
    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    chosen_pool = pool;
    return CUDA_SUCCESS;
}
