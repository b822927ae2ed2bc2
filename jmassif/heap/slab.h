// SPDX-License-Identifier: GPL-2.0-or-later
//
// The memory of the program's small blocks, and what is known of each. The core's allocator puts 32 bytes around a
// block and takes hundreds of instructions; most blocks of most programs are small. Blocks of one size class share a
// slab, with nothing between them, and what is kept of a block is at its place in its slab's tables, which are not in
// the program's memory: a program that writes beyond its blocks breaks no more than its own.

#ifndef JM_SLAB_H
#define JM_SLAB_H

#include "base/compat.h"

#define JM_SLAB_ALIGN     16u   // of each block, bytes
#define JM_SLAB_MAX_BYTES 4096u // a larger block has none here

// What is kept of a live block, until it is freed.
typedef struct {
    UInt *tag;  // whatever the caller likes
    UInt bytes; // as asked for; the program may use them rounded up to JM_SLAB_ALIGN
} SlabBlock;

void jm_slab_init(void);

// A block of so many bytes (0: as malloc(0), one like no other), with tag 0. NULL: it is too large, or the program may
// have no more memory.
void *jm_slab_alloc(SizeT bytes);

// False: the address is not that of a live block from here.
Bool jm_slab_find(Addr address, SlabBlock *block);
Bool jm_slab_free(Addr address);

// Whether a block that shrinks takes less room when it moves: to slabs, or to those of a smaller class.
Bool jm_slab_saves(SizeT from_bytes, SizeT to_bytes);

// Resizes a live block in place. False: it has no room.
Bool jm_slab_resize(Addr address, SizeT bytes);

// Of the program's memory: what is mapped for slabs, and how much of it live blocks have.
void jm_slab_sums(SizeT *mapped, SizeT *used);

void jm_slab_stats(void); // tells what it keeps (stats.h)

#endif
