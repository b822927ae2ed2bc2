// SPDX-License-Identifier: GPL-2.0-or-later
//
// See block.h.

#include "ledger/block.h"
#include "base/clock.h"
#include "calls/scope.h"
#include "ledger/account.h"
#include "ledger/live_tensors.h"
#include "trace/trace.h"

AccountId jm_block_account(ThreadId tid, Kind kind)
{
    Bool ignored;
    NodeId node = jm_scope_capture(tid, &ignored);
    return ignored ? 0 : jm_account(node, kind);
}

static void record(const MemoryBlock *b, ULong time)
{
    if (b->is_traced)
        jm_trace_block(time, b->address, b->bytes, b->account);
    if (!b->is_handle)
        jm_live_tensor_begin(b->address, b->bytes, b->account, b->is_traced);
}

void jm_block_handed_out(const MemoryBlock *b)
{
    record(b, b->is_traced ? jm_clock_now() : 0);
}

void jm_block_taken_back(const MemoryBlock *b)
{
    if (b->is_traced)
        jm_trace_block_end(jm_clock_now(), b->address, b->account);
}

void jm_block_born(ThreadId tid, const MemoryBlock *b)
{
    if (!b->account)
        return;
    if (b->kind == KIND_HEAP) {
        jm_ledger_credit_both(b->account, b->bytes, jm_account_overhead(b->account), b->overhead);
        jm_scope_grow(tid, b->kind, b->bytes, 1);
        jm_block_handed_out(b);
    } else {
        ULong now = jm_clock_now(); // also of the peak that this may be: such blocks are few
        jm_ledger_credit(b->account, b->bytes - b->backed);
        jm_scope_grow(tid, b->kind, b->bytes, 1);
        record(b, now);
    }
}

void jm_block_died(ThreadId tid, const MemoryBlock *b)
{
    if (!b->account)
        return;
    if (b->kind == KIND_HEAP)
        jm_ledger_debit_both(b->account, b->bytes, jm_account_overhead(b->account), b->overhead);
    else
        jm_ledger_debit(b->account, b->bytes - b->backed);
    jm_scope_grow(tid, b->kind, -(Long)b->bytes, -1);
    jm_block_taken_back(b);
}

void jm_block_moved(ThreadId tid, const MemoryBlock *from, const MemoryBlock *to)
{
    if (!from->account || !to->account) {
        jm_block_died(tid, from);
        jm_block_born(tid, to);
        return;
    }
    // Shrink first: opposite changes must not look like a peak in between.
    Bool heap_first = to->bytes < from->bytes;
    if (heap_first)
        jm_ledger_resize(from->account, from->bytes, to->account, to->bytes);
    jm_ledger_resize(jm_account_overhead(from->account), from->overhead, jm_account_overhead(to->account),
                     to->overhead);
    if (!heap_first)
        jm_ledger_resize(from->account, from->bytes, to->account, to->bytes);
    jm_scope_grow(tid, to->kind, (Long)to->bytes - (Long)from->bytes, 0);
    jm_block_taken_back(from);
    jm_block_handed_out(to);
}
