// SPDX-License-Identifier: GPL-2.0-or-later
//
// A block of memory is born, moves and dies here, whichever source reports it: its bytes in the ledger, the growth of
// the API call in progress, its record in the trace, its role if it is a tensor. Sizes are in bytes.
//
// The source keeps its own table of blocks, and calls jm_snapshot_event when that is up to date: a snapshot reads it.

#pragma once

#include "base/clock.h"
#include "calls/scope.h"
#include "ledger/account.h"
#include "ledger/ledger.h"
#include "ledger/live_tensors.h"
#include "trace/trace.h"

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

// A block of malloc moves, or changes its size: one event, so no peak in between.
void jm_block_moved(ThreadId tid, const MemoryBlock *from, const MemoryBlock *to);

// A block begins and ends inside another one, by transfers that the caller makes: only its records.
void jm_block_handed_out(const MemoryBlock *block, ULong time);
void jm_block_taken_back(const MemoryBlock *block);

// Inlined, as every malloc and free comes here: nearly all have neither a record nor a role.
static inline __attribute__((always_inline)) void jm_block_born(ThreadId tid, const MemoryBlock *b)
{
    if (!b->account)
        return;
    ULong now = 0;
    if (b->kind == KIND_HEAP) {
        jm_ledger_credit_both(b->account, b->bytes, jm_account_overhead(b->account), b->overhead);
        now = b->is_traced ? jm_clock_now() : 0;
    } else {
        now = jm_clock_now(); // also of the peak that this may be: such blocks are few
        jm_ledger_credit(b->account, b->bytes - b->backed);
    }
    jm_scope_grow(tid, b->kind, b->bytes, 1);
    if (b->is_traced || jm_account_is_tensor(b->account))
        jm_block_handed_out(b, now);
}

// `account` is the current one, from jm_live_tensor_end.
static inline __attribute__((always_inline)) void jm_block_died(ThreadId tid, const MemoryBlock *b)
{
    if (!b->account)
        return;
    if (b->kind == KIND_HEAP)
        jm_ledger_debit_both(b->account, b->bytes, jm_account_overhead(b->account), b->overhead);
    else
        jm_ledger_debit(b->account, b->bytes - b->backed);
    jm_scope_grow(tid, b->kind, -(Long)b->bytes, -1);
    if (b->is_traced)
        jm_block_taken_back(b);
}
