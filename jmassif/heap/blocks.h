// SPDX-License-Identifier: GPL-2.0-or-later
//
// The live heap blocks: address → size and account. On the path of every malloc and free, and with millions of blocks
// the largest thing the recorder holds.

#ifndef JM_BLOCKS_H
#define JM_BLOCKS_H

#include "base/compat.h"
#include "ledger/ledger.h"

typedef struct {
    ULong bytes;       // as asked for
    AccountId account; // 0: lives, but is not recorded (--ignore-fn, or allocated by the recorder's own calls)
    Bool has_record;   // its allocation has a `+` record, so its end needs a `-`
    Bool is_custom;    // a custom allocator announced it: it is not malloc's to free
    Bool is_small;     // it is in a slab
} Block;

void jm_blocks_add(Addr address, Block block);

// False if the address is not that of a live block.
Bool jm_blocks_find(Addr address, Block *block);

// Takes out a live block, if it is not a small one of malloc's: that goes with its memory (jm_slab_free).
void jm_blocks_remove(Addr address);

// Takes out what a custom allocator announced there; False if none did.
Bool jm_blocks_take_custom(Addr address, Block *block);

// Of a live block.
void jm_blocks_set_account(Addr address, AccountId account);

// Calls `use` with each block that a custom allocator announced.
void jm_blocks_each_custom(void (*use)(Addr address, ULong bytes));

// Calls `use` with each recorded block of malloc's that has at least that many bytes; more than are ever in slabs.
void jm_blocks_each_large(ULong least_bytes, void (*use)(Addr address, ULong bytes));

void jm_blocks_stats(void); // tells what it keeps (stats.h)

#endif
