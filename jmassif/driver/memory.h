// SPDX-License-Identifier: GPL-2.0-or-later
//
// Memory that the kernel's driver has committed for the program: nvmap's buffers and the resource manager's objects. It
// is what blocks of the CUDA API are made of, so such a block is a transfer out of it: what is left is slack, and
// driver memory and API blocks together are what the kernel has committed.

#ifndef JM_DRIVER_MEMORY_H
#define JM_DRIVER_MEMORY_H

#include "driver/map.h"
#include "ledger/ledger.h"

// Memory comes to life, on the account of the thread's stack now. `kind`: KIND_DRIVER, KIND_DRIVER_HOST, KIND_IMPORTED.
DriverMemory *jm_driver_memory_commit(ThreadId tid, Kind kind, ULong bytes);

// It is gone. A block that is still made of it ends by itself later: the call that frees both is under way.
void jm_driver_memory_end(ThreadId tid, DriverMemory *memory);

// What one block, or a pool's reserve, is made of. NULL: of nothing here.
typedef struct Carve Carve;

// Makes up to `bytes` of `account` out of driver memory, and returns how many it was. Memory is looked for where
// `address` lies in the maps of map.h. Where it is in none (0: there is no address), `is_anywhere` takes what
// the thread's call has committed, or else any slack.
ULong jm_driver_carve(ThreadId tid, Carve **carves, AccountId account, Addr address, ULong bytes, Bool is_anywhere);

// Gives it back. Returns how many bytes were not: their memory has ended, so they end with the block.
ULong jm_driver_uncarve(ThreadId tid, Carve **carves, AccountId account);

// A forked child has none of its parent's.
void jm_driver_memory_after_fork_in_child(void);

void jm_driver_memory_write_counters(void);
void jm_driver_memory_stats(void); // tells what it keeps (stats.h)

#endif
