// SPDX-License-Identifier: GPL-2.0-or-later
//
// See block.h.

#include "ledger/block.h"

AccountId jm_block_account(ThreadId tid, Kind kind)
{
    Bool ignored;
    NodeId node = jm_scope_capture(tid, &ignored);
    return ignored ? 0 : jm_account(node, kind);
}

void jm_block_handed_out(const MemoryBlock *b, ULong time)
{
    if (b->is_traced)
        jm_trace_block(time, b->address, b->bytes, b->account);
    if (!b->is_handle && jm_account_is_tensor(b->account))
        jm_live_tensor_begin(b->address, b->bytes, b->account, b->is_traced);
}

void jm_block_taken_back(const MemoryBlock *b)
{
    if (b->is_traced)
        jm_trace_block_end(jm_clock_now(), b->address, b->account);
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
    jm_block_handed_out(to, to->is_traced ? jm_clock_now() : 0);
}
