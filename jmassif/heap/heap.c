// SPDX-License-Identifier: GPL-2.0-or-later
//
// Records heap memory. A block's requested bytes go to the account of its stack; the allocator's overhead (rounding,
// and the header that --heap-admin assumes) goes to one account per owner.

#include "heap/heap.h"
#include "base/client_memory.h"
#include "base/clock.h"
#include "base/hooks.h"
#include "base/options.h"
#include "base/per_thread.h"
#include "base/text.h"
#include "events/exhaustion.h"
#include "events/snapshot.h"
#include "host/host.h"
#include "ledger/block.h"
#include "ledger/live_tensors.h"
#include "trace/trace.h"

#include <errno.h>

// The thread's last allocation; 0 once it was freed.
static PerThread last_allocated = JM_PER_THREAD("jm.heap", Addr, NULL);

static struct {
    ULong failed;
    ULong free_unknown;
    ULong realloc_unknown;
    ULong absurd; // announced blocks of an implausible size or address
} counters;

// With more heap block records than this per second the threshold doubles: a program that churns through megabyte
// buffers must not fill the disk.
#define MAX_RECORDS_PER_SECOND 2000

static ULong window_start_ms;
static UInt window_records;

static Bool wants_record(SizeT bytes)
{
    if (bytes < jm_options.large_bytes)
        return False;
    // --large=0 asks for a record of every block.
    if (jm_options.large_bytes == 0)
        return True;
    if (++window_records > MAX_RECORDS_PER_SECOND) {
        ULong now = jm_clock_ms();
        if (now - window_start_ms < 1000) {
            jm_options.large_bytes *= 2;
            jm_trace_large_threshold(jm_clock_now(), jm_options.large_bytes);
        }
        window_start_ms = now;
        window_records = 0;
    }
    return bytes >= jm_options.large_bytes;
}

// ---- bookkeeping ---------------------------------------------------------------------------------------------

static inline Addr *last_of(ThreadId tid)
{
    return JM_OF_THREAD(&last_allocated, Addr, tid);
}

ULong jm_heap_overhead(Addr address, const Block *block)
{
    // A custom block has no known malloc header, but massif counts one, and so does this.
    return jm_options.heap_admin +
           (block->is_custom ? 0 : host_heap_usable(address, block->bytes, block->is_small) - block->bytes);
}

// A block for ledger/block.h. `account` is its current one; `overhead` beyond its bytes.
static inline MemoryBlock as_memory(Addr address, const Block *block, AccountId account, ULong overhead)
{
    return (MemoryBlock){.address = address,
                         .bytes = block->bytes,
                         .overhead = overhead,
                         .account = account,
                         .kind = KIND_HEAP,
                         .is_traced = block->has_record};
}

static void died(ThreadId tid, Addr address, const Block *block, AccountId account, ULong overhead)
{
    Addr *last = last_of(tid);
    MemoryBlock memory = as_memory(address, block, account, overhead);
    if (UNLIKELY(block->bytes >= JM_LEAST_COPY))
        jm_hooks.range_ended(address, block->bytes);
    jm_block_died(tid, &memory);
    if (*last == address) {
        *last = 0;
        if (account)
            jm_ledger_count_temporary(account);
    }
    jm_snapshot_event();
}

// Forgets one that was never freed: a custom one's end was not announced, or the host missed that of another.
static inline void add(ThreadId tid, Addr address, Block block)
{
    Block stale;
    if (UNLIKELY(jm_blocks_add(address, block, &stale)))
        died(tid, address, &stale, jm_live_tensor_forget(address, stale.account), jm_heap_overhead(address, &stale));
}

static void tell_event(SizeT bytes)
{
    jm_snapshot_event();
    if (UNLIKELY(bytes >= JM_LEAST_COPY))
        jm_snapshot_look();
}

static void born(ThreadId tid, Addr address, Block block)
{
    jm_blocks_prefetch(address);
    block.account = jm_block_account(tid, KIND_HEAP);
    block.has_record = block.account && wants_record(block.bytes);
    add(tid, address, block);
    MemoryBlock memory = as_memory(address, &block, block.account, jm_heap_overhead(address, &block));
    jm_block_born(tid, &memory);
    if (UNLIKELY(block.bytes >= JM_LEAST_COPY))
        jm_hooks.large_block(address, block.bytes);
    *last_of(tid) = address;
    tell_event(block.bytes);
}

// `now` has no account yet.
static void moved(ThreadId tid, Addr from, const Block *block, ULong old_overhead, Addr to, Block now)
{
    MemoryBlock old = as_memory(from, block, jm_live_tensor_end(tid, from, block->account), old_overhead);
    now.account = jm_block_account(tid, KIND_HEAP);
    now.has_record = now.account && wants_record(now.bytes);
    MemoryBlock fresh = as_memory(to, &now, now.account, jm_heap_overhead(to, &now));
    add(tid, to, now);
    jm_block_moved(tid, &old, &fresh);
    if (UNLIKELY(block->bytes >= JM_LEAST_COPY))
        jm_hooks.range_ended(from, block->bytes);
    if (UNLIKELY(now.bytes >= JM_LEAST_COPY))
        jm_hooks.large_block(to, now.bytes);
    *last_of(tid) = to;
    tell_event(now.bytes);
}

// ---- what the host reports -----------------------------------------------------------------------------------

void jm_heap_allocated(ThreadId tid, Addr address, Block block)
{
    if (jm_options.heap)
        born(tid, address, block);
    else
        jm_blocks_add(address, block, &(Block){0});
}

void jm_heap_freed(ThreadId tid, Addr address, const Block *block)
{
    died(tid, address, block, jm_live_tensor_end(tid, address, block->account),
         block->account ? jm_heap_overhead(address, block) : 0);
}

void jm_heap_moved(ThreadId tid, Addr from, const Block *block, ULong old_overhead, Addr to, Block now)
{
    if (jm_options.heap)
        moved(tid, from, block, old_overhead, to, now);
    else
        jm_blocks_add(to, now, &(Block){0});
}

void jm_heap_ran_out(ThreadId tid, const HChar *api, SizeT bytes)
{
    counters.failed++;
    jm_exhaustion_failed(tid, api, ENOMEM, KIND_HEAP, bytes);
}

void jm_heap_refused(void)
{
    counters.failed++;
}

void jm_heap_unknown_free(Addr address)
{
    if (counters.free_unknown++ == 0)
        jm_note("jmassif: 0x%lx is freed, no block of malloc's; such calls go on, and are counted\n", address);
}

void jm_heap_unknown_realloc(void)
{
    counters.realloc_unknown++;
}

// ---- custom allocators ---------------------------------------------------------------------------------------

// Announced sizes can be any number, but sums must not overflow.
static Bool is_absurd(Addr address, SizeT bytes)
{
    Bool fits = address < JM_ADDRESS_SPACE && bytes < JM_ADDRESS_SPACE &&
                jm_ledger_total(SIDE_HOST) + bytes < JM_ADDRESS_SPACE << 8;
    counters.absurd += !fits;
    return !fits;
}

void jm_heap_malloclike(ThreadId tid, Addr address, SizeT bytes)
{
    Block known;
    if (!jm_options.heap || !address || is_absurd(address, bytes))
        return;
    // A custom block at the start of a malloc block is part of it and not recorded. One announced twice is replaced.
    if (jm_blocks_find(address, &known) && !known.is_custom)
        return;
    born(tid, address, (Block){.bytes = bytes, .is_custom = True});
}

void jm_heap_resize_in_place(ThreadId tid, Addr address, SizeT new_bytes)
{
    Block block;
    if (!jm_options.heap || !jm_blocks_find(address, &block)) {
        counters.realloc_unknown += jm_options.heap;
        return;
    }
    if (is_absurd(address, new_bytes) || !jm_blocks_take(address, True, &block))
        return;
    moved(tid, address, &block, jm_options.heap_admin, address, (Block){.bytes = new_bytes, .is_custom = True});
}

void jm_heap_freelike(ThreadId tid, Addr address)
{
    Block block;
    if (!jm_options.heap)
        return;
    if (!jm_blocks_take(address, True, &block)) {
        counters.free_unknown += !jm_blocks_find(address, &block);
        return;
    }
    died(tid, address, &block, jm_live_tensor_end(tid, address, block.account), jm_options.heap_admin);
}

void jm_heap_write_counters(void)
{
    jm_trace_nonzero("heap-allocation-failed", counters.failed);
    jm_trace_nonzero("free-of-unknown-pointer", counters.free_unknown);
    jm_trace_nonzero("realloc-of-unknown-pointer", counters.realloc_unknown);
    jm_trace_nonzero("absurd-block-announced", counters.absurd);
}
