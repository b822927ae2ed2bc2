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
#define MOST_BLOCKS     16384
#define MOST_REGISTERED 1024
#define MOST_STACKS     2048

// A page each, so few: a look costs a fault at most.
#define N_SAMPLES    16
#define SAMPLE_BYTES 32

typedef struct Pair {
    Addr to, to_end; // pairs do not overlap there
    Addr from, from_end;
    ULong bytes;
    ULong begin, unchanged_at; // in time units
    UShort sums[N_SAMPLES];
    AccountId host, device;
    AccountId copied_by, pinned_by; // of the stacks that copied, and registered (0: none), without bytes
    UInt id;                        // in the trace; 0: not written
} Pair;

// Small, as entries move when another begins or ends, and all are searched when memory ends.
typedef struct {
    Addr to; // first: they are sorted by it
    Addr from, from_end;
    Pair *pair;
} Place;

static Array pairs = JM_ARRAY("jm.copies", Place);
static UInt n_ids;
static ULong n_left_out, bytes_left_out;

static Place *place_at(Word i)
{
    return jm_array_at(&pairs, i);
}

static Pair *pair_at(Word i)
{
    return place_at(i)->pair;
}

// ---- large heap blocks ---------------------------------------------------------------------------------------

// The heap's own table finds a block by its start only, and a source often lies inside one. Kept from the first copy
// on.
typedef struct {
    Addr start, end;
} LargeBlock;

static Array blocks = JM_ARRAY("jm.copies", LargeBlock);
static Bool has_copies;

static LargeBlock *block_around(Addr address)
{
    Word i = jm_array_behind(&blocks, 0, address);
    LargeBlock *block = i ? jm_array_at(&blocks, i - 1) : NULL;
    return block && address < block->end ? block : NULL;
}

void jm_copies_block(Addr start, ULong bytes)
{
    if (has_copies && jm_array_n(&blocks) < MOST_BLOCKS && !block_around(start))
        jm_array_insert(&blocks, jm_array_behind(&blocks, 0, start), &(LargeBlock){start, start + bytes});
}

// ---- samples -------------------------------------------------------------------------------------------------

// A changing distance, so that no column of a matrix takes all samples.
static Addr sample_at(const Pair *p, UInt i)
{
    ULong distance = (p->from_end - p->from - SAMPLE_BYTES) / N_SAMPLES;
    return p->from + i * distance + jm_hash(i + 1) % distance;
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
    const LargeBlock *block = block_around(p->from);
    const Bool is_heap = block && p->from_end <= block->end && jm_blocks_find(block->start, &heap) && !heap.is_custom;
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
    jm_trace_copy(p->id, p->begin, p->host, p->device, p->copied_by, p->pinned_by, p->bytes, p->from, p->to);
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

static void end_pair(Word i, Bool is_compared)
{
    Pair *p = pair_at(i);
    ULong now = jm_clock_now();
    if (is_compared && (p->id || had_a_peak(p, now)) && is_unchanged(p, -1))
        p->unchanged_at = now;
    if (!p->id && had_a_peak(p, p->unchanged_at))
        write_pair(p);
    if (p->id)
        jm_trace_copy_end(p->id, p->unchanged_at);
    host_free(p);
    jm_array_remove(&pairs, i);
}

// The first pair with device memory there or behind it.
static Word first_at_device(Addr start)
{
    Word i = jm_array_behind(&pairs, 0, start);
    return i > 0 && pair_at(i - 1)->to_end > start ? i - 1 : i;
}

// Returns whether there was any.
static Bool end_at_device(Addr start, Addr end, Bool is_compared)
{
    Word n = jm_array_n(&pairs);
    for (Word i = first_at_device(start); i < jm_array_n(&pairs) && pair_at(i)->to < end;)
        end_pair(i, is_compared);
    return jm_array_n(&pairs) < n;
}

void jm_copies_ended(Addr start, ULong bytes)
{
    if (!has_copies)
        return;
    const Word first = jm_array_behind(&blocks, 0, start - 1);
    while (first < jm_array_n(&blocks) && ((LargeBlock *)jm_array_at(&blocks, first))->start < start + bytes)
        jm_array_remove(&blocks, first);
    end_at_device(start, start + bytes, True);
    for (Word i = jm_array_n(&pairs) - 1; i >= 0; i--)
        if (place_at(i)->from < start + bytes && start < place_at(i)->from_end)
            end_pair(i, True);
}

// The largest stay. Returns false if there is no room for so many bytes.
static Bool make_room(ULong bytes)
{
    static ULong least; // none is smaller
    if (jm_array_n(&pairs) < MOST_PAIRS) {
        least = 0;
        return True;
    }
    Word smallest = 0;
    for (Word i = 1; bytes > least && i < jm_array_n(&pairs); i++)
        if (pair_at(i)->bytes < pair_at(smallest)->bytes)
            smallest = i;
    if (bytes > least)
        least = pair_at(smallest)->bytes;
    n_left_out++;
    bytes_left_out += bytes > least ? least : bytes;
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
    const LargeBlock *large = block_around(from);
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

// ---- registered memory ---------------------------------------------------------------------------------------

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
    for (Word i = 0; i < jm_array_n(&pairs); i++) {
        Pair *p = pair_at(i);
        if (p->from < r.start || p->from_end > r.end || (!bytes && had_a_peak(p, jm_clock_now())))
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
        if (r->start <= p->from && p->from_end <= r->end)
            return r->by;
    }
    return 0;
}

// ---- sums by stack -------------------------------------------------------------------------------------------

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
    Word i = first_at_device(p->to);
    Pair *known = i < jm_array_n(&pairs) ? pair_at(i) : NULL;
    if (!known || known->to != p->to || known->from != p->from || known->bytes != p->bytes ||
        memcmp(known->sums, p->sums, sizeof p->sums) != 0)
        return False;
    known->unchanged_at = p->begin;
    return True;
}

void jm_copies_copied(ThreadId tid, const CopiedBytes *c)
{
    Pair p = {.to = c->to, .to_end = c->to + c->to_span, .from = c->from, .from_end = c->from + c->from_span};
    if (!c->from || c->bytes < JM_LEAST_COPY || c->from_span < c->bytes || c->to_span < c->bytes ||
        c->from_span >= JM_ADDRESS_SPACE || c->to_span >= JM_ADDRESS_SPACE) {
        end_at_device(p.to, p.to_end, True);
        return;
    }
    if (!has_copies) {
        has_copies = True;
        jm_blocks_each(False, JM_LEAST_COPY, jm_copies_block);
    }
    p.host = host_account(p.from);
    p.device = device_account(p.to);
    p.bytes = c->bytes;
    Bool is_pair = p.host && p.device;
    if (is_pair || !c->is_of_unknown_side) {
        p.copied_by = jm_account(jm_scope_node(tid), KIND_DEVICE);
        count_copy(p.copied_by, p.bytes);
    }
    is_pair = is_pair && take_samples(&p);
    p.begin = p.unchanged_at = jm_clock_now();
    if (is_pair && is_copied_again(&p))
        return;
    Bool is_first = !end_at_device(p.to, p.to_end, True);
    if (!is_pair || !make_room(p.bytes))
        return;
    if (is_first && jm_ledger_peak_is_now(PEAK_TOTAL)) {
        ULong host, device;
        jm_ledger_peak(PEAK_TOTAL, &p.begin, &host, &device); // the copy's memory is what raised it
    }
    p.pinned_by = pinned_by(&p);
    Place place = {p.to, p.from, p.from_end, host_alloc_zeroed("jm.copies", 1, sizeof p)};
    *place.pair = p;
    jm_array_insert(&pairs, jm_array_behind(&pairs, 0, p.to), &place);
}

// ---- snapshots -----------------------------------------------------------------------------------------------

// A comparison takes 5 to 10 µs, so all take a thousandth of the run.
#define MS_BETWEEN 100
#define MS_A_PAIR  10

void jm_copies_verify(Bool in_full)
{
    static ULong next_ms;
    ULong now_ms = jm_clock_ms();
    if (!jm_array_n(&pairs) || (!in_full && now_ms < next_ms))
        return;
    next_ms = now_ms + MS_BETWEEN + jm_array_n(&pairs) * MS_A_PAIR;
    Int pagemap = jm_pagemap_open();
    ULong now = jm_clock_now();
    for (Word i = jm_array_n(&pairs) - 1; i >= 0; i--) {
        Pair *p = pair_at(i);
        if (is_unchanged(p, pagemap))
            p->unchanged_at = now;
        else
            end_pair(i, False);
    }
    jm_close(pagemap);
    for (Word i = 0; i < jm_array_n(&pairs); i++)
        if (!pair_at(i)->id)
            write_pair(pair_at(i));
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
    for (Word i = 0; i < jm_array_n(&pairs); i++)
        host_free(pair_at(i));
    jm_array_clear(&pairs);
    jm_array_clear(&registered);
    n_left_out = bytes_left_out = 0;
    for (CopySum *s = NULL; (s = jm_map_next(&sums, s));)
        s->n = s->bytes = s->changed = 0;
}
