// SPDX-License-Identifier: GPL-2.0-or-later
//
// Memory that the kernel's driver has committed for the program: nvmap's buffers and the resource manager's objects. A
// block of the CUDA API is carved out of it, as a transfer between accounts. So driver memory and API blocks together
// are the memory that the kernel has committed; the rest of the driver's is slack. Sizes are in bytes.

#pragma once

#include "driver/file.h"
#include "ledger/ledger.h"

// Memory by address: one map of the process's own address space, and one of each address space of the GPU. A mapping
// holds its file, as in the kernel, but does not own its memory.
typedef struct DriverMap DriverMap;

DriverMap *jm_driver_map_new(void);
void jm_driver_map_delete(ThreadId tid, DriverMap *map); // and all mappings in it

// Adds a mapping and removes what was there. `file` NULL: nothing is kept alive. `memory` NULL: not driver memory.
void jm_driver_map_add(ThreadId tid, DriverMap *map, Addr start, ULong bytes, DriverFile *file, DriverMemory *memory);

// Removes the range, cutting mappings at its ends.
void jm_driver_map_remove(ThreadId tid, DriverMap *map, Addr start, ULong bytes);

// Removes the whole mapping that begins at `start`, if there is one.
void jm_driver_map_remove_at(ThreadId tid, DriverMap *map, Addr start);

UInt jm_driver_map_count(const DriverMap *map);
Bool jm_driver_map_has(const DriverMap *map, Addr address);

// Credits new memory to the account of the thread's current stack. `kind`: KIND_DRIVER, KIND_DRIVER_HOST,
// KIND_IMPORTED.
DriverMemory *jm_driver_memory_commit(ThreadId tid, Kind kind, ULong bytes);

// Ends memory. A block that is still carved out of it ends later, in the same call of the API.
void jm_driver_memory_end(ThreadId tid, DriverMemory *memory);

// List of the pieces of driver memory behind one block or a pool's reserve; NULL: no piece. The block owns it.
typedef struct Carve Carve;

// Moves up to `bytes` out of driver memory to `account`, and returns how many: from `address` in the maps (0: none),
// then with `is_anywhere` from what the thread's current call has committed, then from any slack.
ULong jm_driver_carve(ThreadId tid, Carve **carves, AccountId account, Addr address, ULong bytes, Bool is_anywhere);

// Moves the bytes back, and frees the list. Returns how many remain in `account`, as their memory has ended: the caller
// debits them with the block.
ULong jm_driver_uncarve(ThreadId tid, Carve **carves, AccountId account);

// Drops all memory in a forked child: its parent's ledger has it.
void jm_driver_memory_after_fork_in_child(void);

void jm_driver_memory_write_counters(void);
