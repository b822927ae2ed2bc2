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

void jm_blocks_add(Addr address, Block block);

// False if no live block starts at the address.
Bool jm_blocks_find(Addr address, Block *block);

// Removes a live block. Does nothing for small blocks: jm_slab_free removes those.
void jm_blocks_remove(Addr address);

// Removes a block whose end was missed: the address is allocated again. False if there is none.
Bool jm_blocks_take_stale(Addr address, Block *block);

// Fetches what the others read of an address into the processor's cache, for a look-up that follows soon.
void jm_blocks_prefetch(Addr address);

// Calls `use` with each block that a custom allocator announced, or with each recorded malloc block; of slab blocks
// with none.
void jm_blocks_each(Bool is_custom, ULong least_bytes, void (*use)(Addr address, ULong bytes));
