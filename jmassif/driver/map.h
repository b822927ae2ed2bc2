// SPDX-License-Identifier: GPL-2.0-or-later
//
// Which driver memory lies at which address: maps of the process's own address space and of the GPU's, one for each of
// its address spaces. A mapping keeps the file of what it maps alive, as it does in the kernel.

#ifndef JM_DRIVER_MAP_H
#define JM_DRIVER_MAP_H

#include "base/compat.h"
#include "driver/file.h"

typedef struct DriverMap DriverMap;

DriverMap *jm_driver_map_new(void);
void jm_driver_map_delete(ThreadId tid, DriverMap *map); // and all mappings in it

// Adds a mapping, in place of what was there. `file` NULL: nothing is kept alive. `memory` NULL: it is of no account.
void jm_driver_map_add(ThreadId tid, DriverMap *map, Addr start, ULong bytes, DriverFile *file, DriverMemory *memory);

// Removes what lies there, or parts of it.
void jm_driver_map_remove(ThreadId tid, DriverMap *map, Addr start, ULong bytes);

// Removes the mapping that begins there.
void jm_driver_map_remove_at(ThreadId tid, DriverMap *map, Addr start);

// What lies there goes to another address, in place of what was there.
void jm_driver_map_move(ThreadId tid, DriverMap *map, Addr from, ULong bytes, Addr to);

UInt jm_driver_map_count(const DriverMap *map);
Bool jm_driver_map_has(const DriverMap *map, Addr address);

// Over all maps: the memory at an address, and where the mapping ends; NULL: none.
DriverMemory *jm_driver_maps_find(Addr address, Addr *end);

// The memory has ended: its mappings are of none.
void jm_driver_maps_forget(const DriverMemory *memory);

void jm_driver_maps_stats(void); // tells what it keeps (stats.h)

#endif
