// SPDX-License-Identifier: GPL-2.0-or-later
//
// The malloc source: what the host reports of malloc, new, free and their variants, and custom allocators by client
// requests. Sizes are in bytes.

#pragma once

#include "heap/blocks.h"

// A block was allocated. `block` has no account yet.
void jm_heap_allocated(ThreadId tid, Addr address, Block block);

// A block is freed. The host then removes it from the table.
void jm_heap_freed(ThreadId tid, Addr address, const Block *block);

// A block has moved or changed its size, and the host has removed the old one from the table. `old_overhead` is
// jm_heap_overhead of the block before anything changed; `now` has no account yet.
void jm_heap_moved(ThreadId tid, Addr from, const Block *block, ULong old_overhead, Addr to, Block now);

// Bytes that a block takes beyond its requested size.
ULong jm_heap_overhead(Addr address, const Block *block);

// Calls that failed: out of memory, refused for an impossible size, of an address that is no block.
void jm_heap_ran_out(ThreadId tid, const HChar *api, SizeT bytes);
void jm_heap_refused(void);
void jm_heap_unknown_free(Addr address);
void jm_heap_unknown_realloc(void);

// VALGRIND_MALLOCLIKE_BLOCK and its variants. `address` must not be null.
void jm_heap_malloclike(ThreadId tid, Addr address, SizeT bytes);
void jm_heap_resize_in_place(ThreadId tid, Addr address, SizeT new_bytes);
void jm_heap_freelike(ThreadId tid, Addr address);

void jm_heap_write_counters(void);
