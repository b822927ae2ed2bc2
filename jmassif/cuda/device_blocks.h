// SPDX-License-Identifier: GPL-2.0-or-later
//
// The live blocks that the CUDA API handed out: memory, arrays, cuMemCreate'd memory with its handles and mappings, and
// imports. Few compared with heap blocks, so they may be told richly.

#ifndef JM_DEVICE_BLOCKS_H
#define JM_DEVICE_BLOCKS_H

#include "base/compat.h"
#include "driver/memory.h"
#include "ledger/ledger.h"

// Pointers and the various handles are numbers of their own, so they are kept apart.
typedef enum { SPACE_POINTER, SPACE_ARRAY, SPACE_VMM, SPACE_EXTERNAL, N_SPACES } Space;

typedef struct DeviceBlock {
    struct DeviceBlock *next; // VgHashNode
    UWord key;                // VgHashNode: address or handle
    Space space;
    Kind kind;
    ULong bytes;
    AccountId account;
    UWord context;  // 0: not known
    UWord pool;     // 0: none, or not known
    ULong serial;   // of its allocation: later ones are larger
    UInt n_handles; // SPACE_VMM: handles and mappings that keep the memory alive; of IPC imports: times opened
    UInt n_mappings;
    Carve *made_of; // driver memory,
    ULong made;     // that many bytes; the rest is its own
    ULong born;     // jm_ledger_n_changes()
    ULong carved;   // bytes that tensors (tensor.c) hold of it; the account has the rest
} DeviceBlock;

// Opens a block: its account (by the thread's stack now), the ledger, the trace. A block that is still listed under the
// same key has ended without our seeing it; it is closed and counted.
DeviceBlock *jm_device_block_open(ThreadId tid, Space space, UWord key, Kind kind, ULong bytes);
void jm_device_block_close(ThreadId tid, DeviceBlock *block);

// The block of an import of unknown size is known to be larger than was thought.
void jm_device_block_grow(ThreadId tid, DeviceBlock *block, ULong bytes);

DeviceBlock *jm_device_block_find(Space space, UWord key);

ULong jm_device_block_serial(void); // of the newest block

// Ends every block of the context, and forgets the host memory that was registered with it. Pools and cuMemCreate'd
// memory belong to the device and survive.
void jm_device_blocks_close_context(ThreadId tid, UWord context);

// Mappings of cuMemCreate'd memory.
void jm_device_map(ThreadId tid, Addr address, ULong bytes, UWord handle);
void jm_device_unmap(ThreadId tid, Addr address, ULong bytes);
DeviceBlock *jm_device_mapped_at(Addr address);

// The block of device memory that `address` lies in, by its own address or a mapping; NULL: none. `*end` is where the
// block or the mapping ends.
DeviceBlock *jm_device_block_around(Addr address, Addr *end);

// Calls `use` with each range of addresses that blocks have, and the kind of the block's account.
void jm_device_blocks_each(void (*use)(Addr address, ULong bytes, Kind kind));

// Called before a block that tensors still hold a part of is closed.
void jm_device_blocks_on_carved_close(void (*callback)(DeviceBlock *block));

// Some block of the owner `cache` with at least `bytes` that no tensor holds; NULL: none.
DeviceBlock *jm_device_any_cached(ULong bytes);

// Whether a caching allocator hands out parts of this block, device or pinned memory.
Bool jm_device_block_is_segment(const DeviceBlock *block);

// The block is a segment from now on, and was one since it was allocated, in the peaks too. A pool's is none.
void jm_device_block_become_segment(DeviceBlock *block);

// The live bytes of pointer and cuMemCreate'd blocks that the owner `cache` answers for, carved or not.
ULong jm_device_cached_bytes(void);

// Ends the memory if no handle and no mapping is left.
void jm_device_block_release_if_unused(ThreadId tid, DeviceBlock *block);

// The pool of a block that was made without it.
void jm_device_block_set_pool(DeviceBlock *block, UWord pool);

// Writes to an event of running out what all pools use and reserve, and what cuMemCreate has made and is mapped of it.
void jm_device_tell_reserves(UInt event);

// A forked child has none of its parent's device memory.
void jm_device_blocks_after_fork_in_child(void);

ULong jm_device_blocks_n_stale(void);

void jm_device_blocks_stats(void); // tells what it keeps (stats.h)

#endif
