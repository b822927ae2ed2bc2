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

void jm_heap_write_counters(void);

void jm_heap_stats(void); // tells what it keeps (stats.h)

#endif
