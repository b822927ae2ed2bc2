// SPDX-License-Identifier: GPL-2.0-or-later
//
// The live blocks of the CUDA API: memory, arrays, cuMemCreate'd memory with its handles and mappings, and imports.
// They are few compared with heap blocks, so each one is recorded in detail. The tables own them; sizes are in bytes.

#pragma once

#include "base/map.h"
#include "driver/memory.h"
#include "ledger/ledger.h"

// Pointers and each type of handle may have equal numbers, so each has its own table.
typedef enum { SPACE_POINTER, SPACE_ARRAY, SPACE_VMM, SPACE_EXTERNAL, N_SPACES } Space;

typedef struct DeviceBlock {
    struct DeviceBlock *next; // MapNode
    UWord key;                // MapNode: address or handle
    Space space;
    Kind kind;
    ULong bytes;
    AccountId account; // at its creation (ledger/live_tensors.h)
    UWord context;     // 0: not known
    UWord pool;        // 0: none, or not known
    UInt n_handles;    // SPACE_VMM: live handles; of IPC imports: times opened
    UInt n_mappings;
    Carve *made_of; // its pieces of driver memory
    ULong made;     // bytes of these; the rest is credited directly
    ULong born;     // jm_ledger_n_changes() when it was credited
    ULong carved;   // bytes of tensors in it (tensors/tensor.c); its account has the rest
} DeviceBlock;

// Opens a block on the account of the thread's current stack, in the ledger and the trace. A block with the same key
// has ended unseen: it is closed and counted.
DeviceBlock *jm_device_block_open(ThreadId tid, Space space, UWord key, Kind kind, ULong bytes);
void jm_device_block_close(ThreadId tid, DeviceBlock *block);

// Enlarges an import to `bytes`, once its size is known. Smaller sizes are ignored.
void jm_device_block_grow(ThreadId tid, DeviceBlock *block, ULong bytes);

DeviceBlock *jm_device_block_find(Space space, UWord key);

// Closes every block of the context. Pools and cuMemCreate'd memory belong to the
// device and survive.
void jm_device_blocks_close_context(ThreadId tid, UWord context);

// Mappings of cuMemCreate'd memory.
void jm_device_map(ThreadId tid, Addr address, ULong bytes, UWord handle);
void jm_device_unmap(ThreadId tid, Addr address, ULong bytes);

// The block that `address` lies in, by the block's own address or a mapping; NULL: none. `*end` is the end of the block
// or the mapping.
DeviceBlock *jm_device_block_around(Addr address, Addr *end);

// Calls `use` with each address range of a block, and the block's kind.
void jm_device_blocks_each(void (*use)(Addr address, ULong bytes, Kind kind));

// Some device block of the owner `cache` with at least `bytes` free of tensors; NULL: none.
DeviceBlock *jm_device_any_cached(ULong bytes);

// True if a caching allocator hands out parts of this block, in device or pinned memory.
Bool jm_device_block_is_segment(const DeviceBlock *block);

// Makes the block a segment since its allocation, in recorded peaks too. Has no effect on blocks of pools.
void jm_device_block_become_segment(DeviceBlock *block);

// Live bytes of device segments, carved or not.
ULong jm_device_cached_bytes(void);

// Closes the block if it has no handle and no mapping left.
void jm_device_block_release_if_unused(ThreadId tid, DeviceBlock *block);

// Sets the pool of a block, which may have been unknown when it was opened.
void jm_device_block_set_pool(DeviceBlock *block, UWord pool);

// Stream-ordered pools (cudaMallocAsync and its variants) by handle. The part of a pool's reserve that its blocks do
// not use is cache.
void jm_pool_reserved(UWord pool, ULong reserved_bytes); // from a query
void jm_pool_destroyed(UWord pool);

// The first pool after `pool` (0: of all) that holds cache and still exists; 0: none. Iterates over pools to query.
UWord jm_pool_next_caching(UWord pool);

// Adds figures to an out-of-memory event: bytes used and reserved by all pools, and created and mapped by VMM.
void jm_device_tell_reserves(UInt event);

// Drops device memory in a forked child, which does not inherit it.
void jm_device_blocks_after_fork_in_child(void);

ULong jm_device_blocks_n_stale(void);
