// SPDX-License-Identifier: GPL-2.0-or-later
//
// A block of memory is born, moves and dies here, whichever source reports it: its bytes in the ledger, the growth of
// the API call in progress, its record in the trace, its role if it is a tensor. Sizes are in bytes.
//
// The source keeps its own table of blocks, and calls jm_snapshot_event when that is up to date: a snapshot reads it.

#ifndef JM_BLOCK_H
#define JM_BLOCK_H

#include "ledger/ledger.h"

typedef struct {
    Addr address; // or a handle, with `is_handle`
    ULong bytes;
    ULong overhead;    // what malloc adds, on an account of its own
    ULong backed;      // part of `bytes` that comes from, or goes to, driver memory by a transfer (driver/memory.h)
    AccountId account; // 0: not recorded
    Kind kind;
    Bool is_traced; // has a record of its own
    Bool is_handle;
} MemoryBlock;

// The account of the thread's current stack; 0 if that is ignored.
AccountId jm_block_account(ThreadId tid, Kind kind);

void jm_block_born(ThreadId tid, const MemoryBlock *block);

// `account` is the current one, from jm_live_tensor_end.
void jm_block_died(ThreadId tid, const MemoryBlock *block);

// A block of malloc moves, or changes its size: one event, so no peak in between.
void jm_block_moved(ThreadId tid, const MemoryBlock *from, const MemoryBlock *to);

// A block begins and ends inside another one, by transfers that the caller makes: only its records.
void jm_block_handed_out(const MemoryBlock *block);
void jm_block_taken_back(const MemoryBlock *block);

#endif
