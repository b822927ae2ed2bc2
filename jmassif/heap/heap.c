// SPDX-License-Identifier: GPL-2.0-or-later
//
// Records heap memory. A block's requested bytes go to the account of its stack; the allocator's overhead (rounding,
// and the header that --heap-admin assumes) goes to one account per owner.

#include "heap/heap.h"
#include "base/client_memory.h"
#include "base/clock.h"
#include "base/options.h"
#include "base/per_thread.h"
#include "base/stats.h"
#include "base/text.h"
#include "calls/scope.h"
#include "events/exhaustion.h"
#include "events/snapshot.h"
#include "heap/blocks.h"
#include "host/host.h"
#include "ledger/account.h"
#include "tensors/pending.h"
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

// ---- block records of large blocks ---------------------------------------------------------------------------

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

static AccountId account_now(ThreadId tid, Bool *ignored)
{
    NodeId node = jm_scope_capture(tid, ignored);
    return *ignored ? 0 : jm_account(node, KIND_HEAP);
}

static Bool move_block(Addr address, AccountId to)
{
    Block block;
    Bool is_found = jm_blocks_find(address, &block);
    jm_assert(is_found);
    jm_blocks_set_account(address, to);
    return block.has_record;
}

// Call before a live block is freed or resized. Updates `block`: its account may change now.
static inline void settle(ThreadId tid, Addr address, Block *block)
{
    if (jm_account_is_tensor(block->account)) {
        Block now = *block;
        jm_pending_ends(tid, address);
        jm_blocks_find(address, &now);
        block->account = now.account;
    }
}

static void unrecord(ThreadId tid, Addr address, const Block *block, ULong overhead);

// Drops a custom block that was never freed: its address is allocated again, so its end was not announced.
static void forget_stale(ThreadId tid, Addr address)
{
    Block stale;
    if (!jm_blocks_take_custom(address, &stale))
        return;
    jm_pending_forget(address);
    unrecord(tid, address, &stale, jm_options.heap_admin);
}

// Fills in the account of `block`.
static void record(ThreadId tid, Addr address, Block block)
{
    Bool ignored;
    forget_stale(tid, address);
    AccountId account = block.account = account_now(tid, &ignored);
    if (account) {
        jm_ledger_credit_both(account, block.bytes, jm_account_overhead(account), jm_heap_overhead(address, &block));
        jm_scope_grow(tid, KIND_HEAP, block.bytes, 1);
        if (wants_record(block.bytes)) {
            block.has_record = True;
            jm_trace_block(jm_clock_now(), address, block.bytes, account);
        }
    }
    jm_blocks_add(address, block);
    if (jm_account_is_tensor(account))
        jm_pending_made(address, block.bytes, account, move_block);
    *last_of(tid) = address;
    jm_snapshot_event();
}

static void unrecord(ThreadId tid, Addr address, const Block *block, ULong overhead)
{
    Addr *last = last_of(tid);
    if (block->account) {
        jm_ledger_debit_both(block->account, block->bytes, jm_account_overhead(block->account), overhead);
        jm_scope_grow(tid, KIND_HEAP, -(Long)block->bytes, -1);
        if (*last == address)
            jm_ledger_count_temporary(block->account);
        if (block->has_record)
            jm_trace_block_end(jm_clock_now(), address, block->account);
    }
    if (*last == address)
        *last = 0;
    jm_snapshot_event();
}

// Records a realloc. `now` has no account yet.
static void rerecord(ThreadId tid, Addr from, const Block *block, ULong old_overhead, Addr to, Block now)
{
    Bool ignored;
    AccountId account = account_now(tid, &ignored);
    AccountId old_account = block->account;
    Bool had_record = block->has_record;
    SizeT bytes = now.bytes;
    now.account = account;
    now.has_record = False;
    ULong new_overhead = jm_heap_overhead(to, &now);
    if (to != from)
        forget_stale(tid, to);
    if (old_account && account) {
        AccountId old_extra = jm_account_overhead(old_account), new_extra = jm_account_overhead(account);
        // Shrink first: opposite changes must not look like a peak in between.
        Bool heap_first = bytes < block->bytes;
        if (heap_first)
            jm_ledger_resize(old_account, block->bytes, account, bytes);
        jm_ledger_resize(old_extra, old_overhead, new_extra, new_overhead);
        if (!heap_first)
            jm_ledger_resize(old_account, block->bytes, account, bytes);
    } else if (old_account) {
        jm_ledger_debit_both(old_account, block->bytes, jm_account_overhead(old_account), old_overhead);
    } else if (account) {
        jm_ledger_credit_both(account, bytes, jm_account_overhead(account), new_overhead);
    }
    jm_scope_grow(tid, KIND_HEAP, (Long)(account ? bytes : 0) - (Long)(old_account ? block->bytes : 0),
                  (account ? 1 : 0) - (old_account ? 1 : 0));
    if (had_record)
        jm_trace_block_end(jm_clock_now(), from, old_account);
    if (account && wants_record(bytes)) {
        now.has_record = True;
        jm_trace_block(jm_clock_now(), to, bytes, account);
    }
    jm_blocks_add(to, now);
    if (jm_account_is_tensor(account))
        jm_pending_made(to, bytes, account, move_block);
    *last_of(tid) = to;
    jm_snapshot_event();
}

// ---- what the host reports -----------------------------------------------------------------------------------

void jm_heap_allocated(ThreadId tid, Addr address, Block block)
{
    if (jm_options.heap)
        record(tid, address, block);
    else
        jm_blocks_add(address, block);
}

void jm_heap_freeing(ThreadId tid, Addr address, Block *block)
{
    settle(tid, address, block);
    unrecord(tid, address, block, block->account ? jm_heap_overhead(address, block) : 0);
}

void jm_heap_moving(ThreadId tid, Addr from, Block *block)
{
    settle(tid, from, block);
}

void jm_heap_moved(ThreadId tid, Addr from, const Block *block, ULong old_overhead, Addr to, Block now)
{
    if (jm_options.heap)
        rerecord(tid, from, block, old_overhead, to, now);
    else
        jm_blocks_add(to, now);
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
        jm_note("jmassif: %p is freed, no block of malloc's; such calls go on, and are counted\n", (void *)address);
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
    record(tid, address, (Block){.bytes = bytes, .is_custom = True});
}

void jm_heap_resize_in_place(ThreadId tid, Addr address, SizeT new_bytes)
{
    Block block;
    if (!jm_options.heap || !jm_blocks_find(address, &block)) {
        counters.realloc_unknown += jm_options.heap;
        return;
    }
    if (!block.is_custom || is_absurd(address, new_bytes))
        return;
    settle(tid, address, &block);
    jm_blocks_remove(address);
    rerecord(tid, address, &block, jm_options.heap_admin, address, (Block){.bytes = new_bytes, .is_custom = True});
}

void jm_heap_freelike(ThreadId tid, Addr address)
{
    Block block;
    if (!jm_options.heap)
        return;
    if (!jm_blocks_find(address, &block)) {
        counters.free_unknown++;
        return;
    }
    if (!block.is_custom)
        return;
    settle(tid, address, &block);
    jm_blocks_remove(address);
    unrecord(tid, address, &block, jm_options.heap_admin);
}

// ---- the rest ------------------------------------------------------------------------------------------------

void jm_heap_write_counters(void)
{
    if (counters.failed)
        jm_trace_counter("heap-allocation-failed", counters.failed);
    if (counters.free_unknown)
        jm_trace_counter("free-of-unknown-pointer", counters.free_unknown);
    if (counters.realloc_unknown)
        jm_trace_counter("realloc-of-unknown-pointer", counters.realloc_unknown);
    if (counters.absurd)
        jm_trace_counter("absurd-block-announced", counters.absurd);
}

void jm_heap_stats(void)
{
    jm_stats_row("jm.heap", "threads", host_n_threads(), jm_per_thread_bytes(&last_allocated));
}
