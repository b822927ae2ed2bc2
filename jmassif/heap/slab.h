// SPDX-License-Identifier: GPL-2.0-or-later
//
// Allocates the program's small blocks. The core's allocator adds 32 bytes to a block and takes hundreds of
// instructions, and most blocks of most programs are small. Blocks of one size class share a slab without gaps. Their
// sizes and accounts are in tables outside the program's memory: a program that writes past a block damages only its
// own blocks.

#pragma once

#include "host/types.h"

#define JM_SLAB_ALIGN     16u   // of each block, in bytes
#define JM_SLAB_MAX_BYTES 4096u // larger blocks are not from slabs

// Data of a live block, valid until it is freed.
typedef struct {
    UInt *tag;  // free for the caller's use
    UInt bytes; // requested size; the program may use it rounded up to JM_SLAB_ALIGN
} SlabBlock;

void jm_slab_init(void);

// Allocates a block with tag 0. 0 bytes give a unique address, as malloc(0) does. NULL if too large, or when out of
// memory.
void *jm_slab_alloc(SizeT bytes);

// False if the address is not a live slab block.
Bool jm_slab_find(Addr address, SlabBlock *block);
Bool jm_slab_free(Addr address);

// True if a shrunk block takes less memory after a move into a slab, or into one of a smaller class.
Bool jm_slab_saves(SizeT from_bytes, SizeT to_bytes);

// Resizes a live block in place. False if its slot is too small.
Bool jm_slab_resize(Addr address, SizeT bytes);
