// SPDX-License-Identifier: GPL-2.0-or-later
//
// The replacement of malloc, new, free and their variants.

#pragma once

#include "host/valgrind/compat.h"

// Registers the replacement with the core. Called from pre_clo_init.
void jm_malloc_init(void);

// For the functions of the preload library (preload/heap.c). NULL when out of memory. A failing operator new is not
// recorded: libstdc++ then calls malloc, which is. `align` 0 means the default.
void *jm_malloc_calloc(ThreadId tid, SizeT n, SizeT each);
void *jm_malloc_pvalloc(ThreadId tid, SizeT bytes);
void *jm_malloc_new(ThreadId tid, SizeT bytes, SizeT align);
