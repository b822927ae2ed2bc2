// SPDX-License-Identifier: GPL-2.0-or-later
//
// The malloc source. Called by the core's replacement of malloc, new, free and their variants, and for client requests
// of custom allocators. Sizes are in bytes.

#ifndef JM_HEAP_H
#define JM_HEAP_H

#include "base/compat.h"

// Registers the malloc replacement with the core. Called from pre_clo_init.
void jm_heap_init(void);

// VALGRIND_MALLOCLIKE_BLOCK and its variants. `address` must not be null.
void jm_heap_malloclike(ThreadId tid, Addr address, SizeT bytes);
void jm_heap_resize_in_place(ThreadId tid, Addr address, SizeT new_bytes);
void jm_heap_freelike(ThreadId tid, Addr address);

// For the functions of the preload library (preload/heap.c). NULL when out of memory. A failing operator new is not
// recorded: libstdc++ then calls malloc, which is. `align` 0 means the default.
void *jm_heap_calloc(ThreadId tid, SizeT n, SizeT each);
void *jm_heap_pvalloc(ThreadId tid, SizeT bytes);
void *jm_heap_new(ThreadId tid, SizeT bytes, SizeT align);

// The fields of mallinfo, in its order.
#define JM_N_MALLINFO_FIELDS 10
void jm_heap_mallinfo(ThreadId tid, SizeT *fields);

void jm_heap_write_counters(void);

void jm_heap_stats(void); // writes sizes of tables (stats.h)

#endif
