// SPDX-License-Identifier: GPL-2.0-or-later
//
// The malloc source: the core's replacement of malloc, new, free and their kin calls these, and client requests of
// custom allocators arrive here too.

#ifndef JM_HEAP_H
#define JM_HEAP_H

#include "base/compat.h"

// Registers the malloc replacement with the core. Called from pre_clo_init.
void jm_heap_init(void);

// VALGRIND_MALLOCLIKE_BLOCK and its kin. `address` must not be null.
void jm_heap_malloclike(ThreadId tid, Addr address, SizeT bytes);
void jm_heap_resize_in_place(ThreadId tid, Addr address, SizeT new_bytes);
void jm_heap_freelike(ThreadId tid, Addr address);

// What the preload library's functions ask for (preload/heap.c); NULL: the program may have no more. That of new goes
// untold: the C++ library asks malloc next. `align` 0: the usual.
void *jm_heap_calloc(ThreadId tid, SizeT n, SizeT each);
void *jm_heap_pvalloc(ThreadId tid, SizeT bytes);
void *jm_heap_new(ThreadId tid, SizeT bytes, SizeT align);

// The numbers of mallinfo, in its order.
#define JM_N_MALLINFO_FIELDS 10
void jm_heap_mallinfo(ThreadId tid, SizeT *fields);

void jm_heap_write_counters(void);

void jm_heap_stats(void); // tells what it keeps (stats.h)

#endif
