// SPDX-License-Identifier: GPL-2.0-or-later
//
// The live heap blocks: address → size and account. Used by every malloc and free, and with millions of blocks the
// recorder's largest data.

#pragma once

#include "ledger/ledger.h"

typedef struct {
    ULong bytes;       // requested size
    AccountId account; // at its creation (ledger/live_tensors.h); 0: live but not recorded (--ignore-fn, or allocated
                       // by the recorder's own calls)
    Bool has_record;   // its allocation has a `+` record, so its free needs a `-`
    Bool is_custom;    // announced by a custom allocator; free() does not apply
    Bool is_small;     // in a slab
} Block;

// True if the address had a block whose end was missed, or that a custom allocator announced: then `stale` is it.
Bool jm_blocks_add(Addr address, Block block, Block *stale);

// False if no live block starts at the address.
Bool jm_blocks_find(Addr address, Block *block);

// Removes a live block, one that a custom allocator announced or another. False if there is none, or if it is small:
// jm_slab_free removes those.
Bool jm_blocks_take(Addr address, Bool is_custom, Block *block);

// Fetches what the others read of an address into the processor's cache, for a look-up that follows soon.
void jm_blocks_prefetch(Addr address);

// Calls `use` with each block that a custom allocator announced, or with each recorded malloc block; of slab blocks
// with none.
void jm_blocks_each(Bool is_custom, ULong least_bytes, void (*use)(Addr address, ULong bytes));
