// SPDX-License-Identifier: GPL-2.0-or-later
//
// The pairs, and the sums by stack; see copies.h.
//
// A source is compared by samples: a checksum of N_SAMPLES places, taken at the copy and again before snapshots and at
// the pair's end. So a change elsewhere goes unseen, and the reporter says that it is sampled. The time until which a
// pair is known to hold is that of the last comparison that found the source unchanged. Pages that are not in memory
// are not read, as that would bring them back.
//
// A pair is written to the trace if it lives at a snapshot or at a peak. A program may copy a thousand times a second.

#include "copies/copies.h"
#include "base/array.h"
#include "base/checksum.h"
#include "base/client_memory.h"
#include "base/clock.h"
#include "base/kernel.h"
#include "base/libc.h"
#include "base/map.h"
#include "base/ranges.h"
#include "base/table.h"
#include "calls/scope.h"
#include "device/blocks.h"
#include "heap/blocks.h"
#include "host/host.h"
#include "ledger/account.h"
#include "ledger/live_tensors.h"
#include "pages/mappings.h"
#include "trace/trace.h"

#include <asm/unistd.h>
#include <sys/uio.h>

// Limits of the tables: together below 1 MB.
#define MOST_PAIRS      2048
#define MOST_BLOCKS     8192
#define MOST_REGISTERED 1024
#define MOST_STACKS     2048

// A page each, so few: a look costs a fault at most.
#define N_SAMPLES    16
#define SAMPLE_BYTES 32

typedef struct {
    Range to, from; // of no two pairs overlaps `to`
    ULong bytes;
    ULong begin, unchanged_at; // in time units
    UShort sums[N_SAMPLES];
    AccountId host, device;
    AccountId copied_by, pinned_by; // of the stacks that copied, and registered (0: none), without bytes
    UInt id;                        // in the trace; 0: not written
} Pair;

static Ranges by_device, by_host;
static UInt n_pairs, n_ids;
static ULong n_left_out, bytes_left_out;

static Pair *pair_from(Range *from)
{
    return (Pair *)((UChar *)from - __builtin_offsetof(Pair, from));
}

// In no order; NULL begins, and ends.
static Pair *next_pair(const Pair *p)
{
    return jm_ranges_next(&by_device, p ? &p->to : NULL);
}

// ---- large heap blocks ---------------------------------------------------------------------------------------

// The heap's own table finds a block by its start only, and a source often lies inside one. Kept from the first copy
// on.
static Ranges blocks;
static UInt n_blocks;
static Bool has_copies;

static Range *block_around(Addr address)
{
    return jm_ranges_find(&blocks, address, address + 1);
}

void jm_copies_block(Addr start, ULong bytes)
{
    if (!has_copies || n_blocks == MOST_BLOCKS || block_around(start))
        return;
    Range *block = host_alloc_zeroed("jm.copies", 1, sizeof *block);
    block->start = start;
    block->end = start + bytes;
    jm_ranges_add(&blocks, block);
    n_blocks++;
}

// ---- samples -------------------------------------------------------------------------------------------------

// A changing distance, so that no column of a matrix takes all samples.
static Addr sample_at(const Pair *p, UInt i)
{
    ULong distance = (p->from.end - p->from.start - SAMPLE_BYTES) / N_SAMPLES;
    return p->from.start + i * distance + jm_hash(i + 1) % distance;
}

static UShort sum_of(const void *sample)
{
    return (UShort)jm_checksum(sample, SAMPLE_BYTES, 1);
}

typedef UChar Samples[N_SAMPLES][SAMPLE_BYTES];

// The kernel reads: another thread may unmap the memory, and managed memory may be out of the processor's reach. It
// writes to our own memory, because it looks up each page of the other side: of 16 here that takes four times as long.
static Bool read_samples(const struct iovec *from, UInt n, Samples into)
{
    struct iovec to = {into, (SizeT)n * SAMPLE_BYTES};
    return jm_kernel_call6(__NR_process_vm_writev, jm_process_id(), (UWord)from, n, (UWord)&to, 1, 0) ==
           (Long)to.iov_len;
}

// Returns whether the source can be read. The copy has just read it, and a heap block cannot be freed meanwhile.
static Bool take_samples(Pair *p)
{
    Samples bytes;
    struct iovec from[N_SAMPLES];
    Block heap;
    const Range *block = block_around(p->from.start);
    const Bool is_heap = block && p->from.end <= block->end && jm_blocks_find(block->start, &heap) && !heap.is_custom;
    for (UInt i = 0; i < N_SAMPLES; i++)
        from[i] = (struct iovec){(void *)sample_at(p, i), SAMPLE_BYTES};
    if (!is_heap && !read_samples(from, N_SAMPLES, bytes))
        return False;
    for (UInt i = 0; i < N_SAMPLES; i++)
        p->sums[i] = sum_of(is_heap ? from[i].iov_base : bytes[i]);
    return True;
}

// Entries of /proc/self/pagemap, read ahead: a small source has all its samples in them.
typedef struct {
    Addr first; // page
    Addr n;
    ULong entries[64];
} Present;

static Bool is_present(Present *present, Int pagemap, Addr address)
{
    const Addr page = address / HOST_PAGE_BYTES;
    if (pagemap < 0)
        return True;
    if (page - present->first >= present->n) {
        const Long n_bytes = jm_read_at(pagemap, present->entries, sizeof present->entries, page * sizeof(ULong));
        present->first = page;
        present->n = n_bytes > 0 ? n_bytes / sizeof(ULong) : 0;
    }
    return !present->n || present->entries[page - present->first] >> 63;
}

// Returns whether most samples are in memory, and these the same.
static Bool is_unchanged(const Pair *p, Int pagemap)
{
    Samples bytes;
    struct iovec from[N_SAMPLES];
    UInt which[N_SAMPLES], n = 0;
    Present present = {.n = 0};
    for (UInt i = 0; i < N_SAMPLES; i++) {
        from[n] = (struct iovec){(void *)sample_at(p, i), SAMPLE_BYTES};
        if (is_present(&present, pagemap, sample_at(p, i)))
            which[n++] = i;
    }
    if (n <= N_SAMPLES / 2 || !read_samples(from, n, bytes))
        return False;
    for (UInt i = 0; i < n; i++)
        if (sum_of(bytes[i]) != p->sums[which[i]])
            return False;
    return True;
}

// ---- pairs begin and end -------------------------------------------------------------------------------------

static void write_pair(Pair *p)
{
    if (!p->id)
        p->id = ++n_ids;
    jm_trace_copy(p->id, p->begin, p->host, p->device, p->copied_by, p->pinned_by, p->bytes, p->from.start,
                  p->to.start);
}

static Bool had_a_peak(const Pair *p, ULong until)
{
    for (PeakId peak = 0; peak < N_PEAKS; peak++) {
        ULong time, host, device;
        jm_ledger_peak(peak, &time, &host, &device);
        if (time >= p->begin && time <= until)
            return True;
    }
    return False;
}

static void drop(Pair *p)
{
    jm_ranges_remove(&by_device, &p->to);
    jm_ranges_remove(&by_host, &p->from);
    host_free(p);
    n_pairs--;
}

static void end_pair(Pair *p, Bool is_compared)
{
    ULong now = jm_clock_now();
    if (is_compared && (p->id || had_a_peak(p, now)) && is_unchanged(p, -1))
        p->unchanged_at = now;
    if (!p->id && had_a_peak(p, p->unchanged_at))
        write_pair(p);
    if (p->id)
        jm_trace_copy_end(p->id, p->unchanged_at);
    drop(p);
}

// Returns whether there was any.
static Bool end_at_device(const Range *to)
{
    Bool is_any = False;
    for (Pair *p; (p = jm_ranges_find(&by_device, to->start, to->end)); is_any = True)
        end_pair(p, True);
    return is_any;
}

void jm_copies_ended(Addr start, ULong bytes)
{
    if (!has_copies)
        return;
    for (Range *block; (block = jm_ranges_find(&blocks, start, start + bytes)) && block->start >= start;) {
        jm_ranges_remove(&blocks, block);
        host_free(block);
        n_blocks--;
    }
    end_at_device(&(Range){.start = start, .end = start + bytes});
    for (Range *from; (from = jm_ranges_find(&by_host, start, start + bytes));)
        end_pair(pair_from(from), True);
}

// The largest stay. Returns false if there is no room for so many bytes.
static Bool make_room(ULong bytes)
{
    static ULong least; // none is smaller
    if (n_pairs < MOST_PAIRS) {
        least = 0;
        return True;
    }
    Pair *smallest = next_pair(NULL);
    for (Pair *p = smallest; bytes > least && (p = next_pair(p));)
        if (p->bytes < smallest->bytes)
            smallest = p;
    if (bytes > least)
        least = smallest->bytes;
    n_left_out++;
    bytes_left_out += jm_smaller(bytes, least);
    if (bytes <= least)
        return False;
    end_pair(smallest, False);
    return True;
}

// ---- the two sides -------------------------------------------------------------------------------------------

// The account of the host memory at an address; 0 if it is none.
static AccountId host_account(Addr from)
{
    Addr end;
    Block heap;
    const Range *large = block_around(from);
    if (large)
        return jm_blocks_find(large->start, &heap) ? heap.account : 0;
    const DeviceBlock *block = jm_device_block_around(from, &end);
    if (block)
        return jm_kind_side(block->kind) == SIDE_HOST ? block->account : 0;
    return jm_mappings_account(from);
}

static AccountId device_account(Addr to)
{
    Addr end;
    const DeviceBlock *block = jm_device_block_around(to, &end);
    return block && jm_kind_side(block->kind) == SIDE_DEVICE ? jm_live_tensor_account(to, block->account) : 0;
}

// ---- registered memory, sums by stack ------------------------------------------------------------------------

typedef struct {
    Addr start, end;
    AccountId by;
} Registered;

static Array registered = JM_ARRAY("jm.copies", Registered);

void jm_copies_registered(ThreadId tid, Addr start, ULong bytes)
{
    Registered r = {start, start + bytes, bytes ? jm_account(jm_scope_node(tid), KIND_PINNED) : 0};
    Registered *known = jm_array_find(&registered, &start, sizeof start);
    if (known) {
        r.end = bytes ? r.end : known->end;
        jm_array_remove(&registered, ((UChar *)known - registered.records) / (Word)sizeof r);
    }
    if (bytes && jm_array_n(&registered) < MOST_REGISTERED)
        jm_array_add(&registered, &r);
    for (Pair *p = NULL; (p = next_pair(p));) {
        if (p->from.start < r.start || p->from.end > r.end || (!bytes && had_a_peak(p, jm_clock_now())))
            continue;
        p->pinned_by = r.by;
        if (p->id)
            write_pair(p);
    }
}

static AccountId pinned_by(const Pair *p)
{
    for (Word i = 0; i < jm_array_n(&registered); i++) {
        const Registered *r = jm_array_at(&registered, i);
        if (r->start <= p->from.start && p->from.end <= r->end)
            return r->by;
    }
    return 0;
}

typedef struct {
    MapNode node; // by the account
    ULong n, bytes;
    Bool changed;
} CopySum;

static Map sums = JM_MAP("jm.copies");

static void count_copy(AccountId by, ULong bytes)
{
    CopySum *sum = jm_map_find(&sums, by);
    if (!sum) {
        if (jm_map_n(&sums) == MOST_STACKS) {
            n_left_out++;
            return;
        }
        sum = host_alloc_zeroed("jm.copies", 1, sizeof *sum);
        sum->node.key = by;
        jm_map_add(&sums, sum);
    }
    sum->n++;
    sum->bytes += bytes;
    sum->changed = True;
}

// ---- a copy --------------------------------------------------------------------------------------------------

// The same bytes are copied to where they are: the pair goes on.
static Bool is_copied_again(const Pair *p)
{
    Pair *known = jm_ranges_find(&by_device, p->to.start, p->to.end);
    if (!known || known->to.start != p->to.start || known->from.start != p->from.start || known->bytes != p->bytes ||
        memcmp(known->sums, p->sums, sizeof p->sums) != 0)
        return False;
    known->unchanged_at = p->begin;
    return True;
}

void jm_copies_copied(ThreadId tid, const CopiedBytes *c)
{
    Pair p = {.to = {.start = c->to, .end = c->to + c->to_span},
              .from = {.start = c->from, .end = c->from + c->from_span},
              .bytes = c->bytes};
    if (!c->from || c->bytes < JM_LEAST_COPY || c->from_span < c->bytes || c->to_span < c->bytes ||
        c->from_span >= JM_ADDRESS_SPACE || c->to_span >= JM_ADDRESS_SPACE) {
        end_at_device(&p.to);
        return;
    }
    if (!has_copies) {
        has_copies = True;
        jm_blocks_each(False, JM_LEAST_COPY, jm_copies_block);
    }
    p.host = host_account(p.from.start);
    p.device = device_account(p.to.start);
    Bool is_pair = p.host && p.device;
    if (is_pair || !c->is_of_unknown_side) {
        p.copied_by = jm_account(jm_scope_node(tid), KIND_DEVICE);
        count_copy(p.copied_by, c->bytes);
    }
    is_pair = is_pair && take_samples(&p);
    p.begin = p.unchanged_at = jm_clock_now();
    if (is_pair && is_copied_again(&p))
        return;
    Bool is_first = !end_at_device(&p.to);
    if (!is_pair || !make_room(c->bytes))
        return;
    if (is_first && jm_ledger_peak_is_now(PEAK_TOTAL)) {
        ULong host, device;
        jm_ledger_peak(PEAK_TOTAL, &p.begin, &host, &device); // the copy's memory is what raised it
    }
    p.pinned_by = pinned_by(&p);
    Pair *added = host_alloc_zeroed("jm.copies", 1, sizeof p);
    *added = p;
    jm_ranges_add(&by_device, &added->to);
    jm_ranges_add(&by_host, &added->from);
    n_pairs++;
}

// ---- snapshots -----------------------------------------------------------------------------------------------

// A comparison takes 5 to 10 µs, so all take a thousandth of the run.
#define MS_BETWEEN 100
#define MS_A_PAIR  10

void jm_copies_verify(Bool in_full)
{
    static ULong next_ms;
    ULong now_ms = jm_clock_ms();
    if (!n_pairs || (!in_full && now_ms < next_ms))
        return;
    next_ms = now_ms + MS_BETWEEN + n_pairs * MS_A_PAIR;
    Int pagemap = jm_pagemap_open();
    ULong now = jm_clock_now();
    for (Pair *p = next_pair(NULL), *next; p; p = next) {
        next = next_pair(p);
        if (is_unchanged(p, pagemap))
            p->unchanged_at = now;
        else
            end_pair(p, False);
    }
    jm_close(pagemap);
    for (Pair *p = NULL; (p = next_pair(p));)
        if (!p->id)
            write_pair(p);
    jm_trace_copy_end(0, now);
}

void jm_copies_write(void)
{
    for (CopySum *s = NULL; (s = jm_map_next(&sums, s));) {
        if (s->changed)
            jm_trace_copied(s->node.key, s->n, s->bytes);
        s->changed = False;
    }
    jm_trace_nonzero("copies-not-followed", n_left_out);
    jm_trace_nonzero("copies-not-followed-bytes", bytes_left_out);
}

// Device memory is not inherited.
void jm_copies_after_fork_in_child(void)
{
    for (Pair *p; (p = next_pair(NULL));)
        drop(p);
    jm_array_clear(&registered);
    n_left_out = bytes_left_out = 0;
    for (CopySum *s = NULL; (s = jm_map_next(&sums, s));)
        s->n = s->bytes = s->changed = 0;
}
