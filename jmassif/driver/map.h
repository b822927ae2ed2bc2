// SPDX-License-Identifier: GPL-2.0-or-later
//
// Driver memory by address: one map of the process's own address space, and one of each address space of the GPU. A
// mapping holds its file, as in the kernel, but does not own its memory. Sizes are in bytes.

#ifndef JM_DRIVER_MAP_H
#define JM_DRIVER_MAP_H

#include "driver/file.h"
#include "host/types.h"

typedef struct DriverMap DriverMap;

DriverMap *jm_driver_map_new(void);
void jm_driver_map_delete(ThreadId tid, DriverMap *map); // and all mappings in it

// Adds a mapping and removes what was there. `file` NULL: nothing is kept alive. `memory` NULL: not driver memory.
void jm_driver_map_add(ThreadId tid, DriverMap *map, Addr start, ULong bytes, DriverFile *file, DriverMemory *memory);

// Removes the range, cutting mappings at its ends.
void jm_driver_map_remove(ThreadId tid, DriverMap *map, Addr start, ULong bytes);

// Removes the whole mapping that begins at `start`, if there is one.
void jm_driver_map_remove_at(ThreadId tid, DriverMap *map, Addr start);

// Moves the range to another address, and removes what was there.
void jm_driver_map_move(ThreadId tid, DriverMap *map, Addr from, ULong bytes, Addr to);

UInt jm_driver_map_count(const DriverMap *map);
Bool jm_driver_map_has(const DriverMap *map, Addr address);

// Searches all maps for the memory at an address; `*end` is the end of its mapping. NULL: none.
DriverMemory *jm_driver_maps_find(Addr address, Addr *end);

// Clears the memory of its mappings when it has ended; the mappings remain.
void jm_driver_maps_forget(const DriverMemory *memory);

void jm_driver_maps_stats(void); // rows for --stats=yes

#endif
