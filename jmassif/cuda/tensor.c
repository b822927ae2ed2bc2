// SPDX-License-Identifier: GPL-2.0-or-later
//
// Tensors inside segments; see tensor.h. With expandable segments a tensor may span several chunks of memory that are
// mapped one after another, so it is a list of parts.

#include "cuda/tensor.h"
#include "base/map.h"
#include "base/stats.h"
#include "calls/scope.h"
#include "cuda/device_blocks.h"
#include "events/snapshot.h"
#include "host/host.h"
#include "ledger/account.h"
#include "ledger/block.h"
#include "ledger/live_tensors.h"
#include "trace/trace.h"

typedef struct {
    DeviceBlock *segment;
    ULong bytes;
} Part;

typedef struct Tensor {
    struct Tensor *next; // MapNode
    UWord key;           // MapNode: the reported address
    ULong bytes;
    AccountId account;
    Bool is_exact;
    UInt n_parts;
    Part *parts;
} Tensor;

static Map *tensors;
static ULong live_bytes;

static struct {
    ULong without_segment; // reported, but in no known segment
    ULong unknown_free;
    ULong allocated_differs; // reports with totals other than the ledger's
    ULong reserved_differs;
} counters;

static void drop_from_segment(DeviceBlock *segment);

static Map *table(void)
{
    if (!tensors) {
        tensors = jm_map_new("jm.tensor");
        jm_device_blocks_on_carved_close(drop_from_segment);
    }
    return tensors;
}

// True if a part in the segment is possible: all parts of a tensor must be in one memory space, since its bytes move
// from the segments' accounts to one account.
static Bool fits(const Tensor *t, const DeviceBlock *segment)
{
    UInt node;
    Kind kind = segment->kind;
    OwnerId owner;
    if (!segment->account || (t->is_exact && !jm_device_block_is_segment(segment)))
        return False;
    if (t->account)
        jm_ledger_describe(t->account, &node, &kind, &owner);
    else if (t->n_parts)
        kind = t->parts[0].segment->kind;
    return jm_kind_side(kind) == jm_kind_side(segment->kind);
}

// Finds the parts of [address, address + bytes) in their segments. PyTorch up to 1.9 reports another number, not the
// address; then any segment with enough cache left serves, as the sums are the same.
static Bool find_parts(Tensor *t)
{
    Addr at = t->key, end;
    ULong left = t->bytes;
    while (left > 0) {
        DeviceBlock *segment = jm_device_block_around(at, &end);
        if (!segment || !fits(t, segment))
            break;
        ULong bytes = end - at < left ? end - at : left;
        if (segment->bytes - segment->carved < bytes)
            break;
        t->parts = host_realloc("jm.tensor", t->parts, (t->n_parts + 1) * sizeof *t->parts);
        t->parts[t->n_parts++] = (Part){segment, bytes};
        at += bytes;
        left -= bytes;
    }
    if (left == 0)
        return True;
    t->n_parts = 0;
    if (t->is_exact)
        return False;
    DeviceBlock *segment = jm_device_any_cached(t->bytes);
    if (!segment || !fits(t, segment))
        return False;
    t->parts = host_realloc("jm.tensor", t->parts, sizeof *t->parts);
    t->parts[t->n_parts++] = (Part){segment, t->bytes};
    return True;
}

static void discard(Tensor *t)
{
    if (t->parts)
        host_free(t->parts);
    host_free(t);
}

static MemoryBlock as_memory(const Tensor *t, AccountId account)
{
    return (MemoryBlock){.address = t->key, .bytes = t->bytes, .account = account, .is_traced = True};
}

// A tensor counts as one block, with its first part.
static void hold_parts(Tensor *t, AccountId account)
{
    for (UInt i = 0; i < t->n_parts; i++) {
        Part *part = &t->parts[i];
        jm_ledger_transfer(part->segment->account, account, part->bytes, i == 0);
        part->segment->carved += part->bytes;
    }
    live_bytes += t->bytes;
}

static void let_go_of_parts(Tensor *t, AccountId account)
{
    for (UInt i = 0; i < t->n_parts; i++) {
        Part *part = &t->parts[i];
        jm_ledger_transfer(account, part->segment->account, part->bytes, i == 0 ? -1 : 0);
        part->segment->carved -= part->bytes;
    }
    live_bytes -= t->bytes;
}

static void take(ThreadId tid, Tensor *t)
{
    Bool ignored;
    NodeId node = jm_scope_capture(tid, &ignored);
    t->account = jm_account_handed_out(node, t->parts[0].segment->kind);
    hold_parts(t, t->account);
    MemoryBlock memory = as_memory(t, t->account);
    jm_block_handed_out(&memory);
}

// The parts are back in their segments.
static void end(Tensor *t, AccountId account)
{
    MemoryBlock memory = as_memory(t, account);
    jm_block_taken_back(&memory);
    jm_map_remove(table(), t->key);
    discard(t);
}

static Bool has_part_in(const Tensor *t, const DeviceBlock *segment)
{
    for (UInt i = 0; i < t->n_parts; i++)
        if (t->parts[i].segment == segment)
            return True;
    return False;
}

// Handles a segment that ends under its tensors. Those inside it by address end with it (a device reset). Others were
// only assumed to lie in it and move to another segment.
static void drop_from_segment(DeviceBlock *segment)
{
    UInt n;
    MapNode **all = jm_map_nodes(table(), &n);
    for (UInt i = 0; i < n; i++) {
        Tensor *t = (Tensor *)all[i];
        if (!has_part_in(t, segment))
            continue;
        AccountId account = jm_live_tensor_account(t->key, t->account);
        let_go_of_parts(t, account);
        Bool is_inside = t->key >= segment->key && t->key < segment->key + segment->bytes;
        t->n_parts = 0;
        if (!is_inside && find_parts(t)) {
            hold_parts(t, account);
        } else {
            jm_live_tensor_forget(t->key, t->account);
            end(t, account);
        }
    }
    if (all)
        host_free(all);
}

static void check_totals(const TensorReport *report)
{
    // The framework's totals are per device; the ledger's are of all devices.
    static Int only_device = -1;
    static Bool has_several;
    if (only_device < 0)
        only_device = report->device;
    has_several |= report->device != only_device;
    if (!report->has_totals || has_several)
        return;
    if (report->total_allocated != live_bytes)
        counters.allocated_differs++;
    if (report->total_reserved != jm_device_cached_bytes())
        counters.reserved_differs++;
}

void jm_tensor_report(ThreadId tid, const TensorReport *report)
{
    if (report->bytes > 0) {
        Tensor *t = host_alloc_zeroed("jm.tensor", 1, sizeof *t);
        t->key = report->address;
        t->bytes = report->bytes;
        t->is_exact = report->is_exact;
        if (jm_map_find(table(), t->key) || !find_parts(t)) {
            counters.without_segment += !report->is_exact;
            discard(t);
        } else {
            jm_map_add(table(), t);
            take(tid, t);
        }
    } else if (report->bytes < 0) {
        Tensor *t = jm_map_find(table(), report->address);
        if (t) {
            AccountId account = jm_live_tensor_end(tid, t->key, t->account);
            let_go_of_parts(t, account);
            end(t, account);
        } else {
            counters.unknown_free += !report->is_exact;
        }
    }
    check_totals(report);
    jm_snapshot_event();
}

void jm_tensor_handed_out(ThreadId tid, Addr address, ULong bytes)
{
    Addr end;
    DeviceBlock *block = jm_device_block_around(address, &end);
    if (!block || !bytes || bytes > end - address)
        return;
    jm_device_block_become_segment(block);
    TensorReport report = {.is_exact = True, .address = address, .bytes = (Long)bytes};
    jm_tensor_report(tid, &report);
}

void jm_tensor_taken_back(ThreadId tid, Addr address)
{
    TensorReport report = {.is_exact = True, .address = address, .bytes = -1};
    jm_tensor_report(tid, &report);
}

void jm_tensor_write_counters(void)
{
    if (counters.without_segment)
        jm_trace_counter("tensor-without-segment", counters.without_segment);
    if (counters.unknown_free)
        jm_trace_counter("tensor-free-unknown", counters.unknown_free);
    if (counters.allocated_differs)
        jm_trace_counter("tensor-allocated-differs", counters.allocated_differs);
    if (counters.reserved_differs)
        jm_trace_counter("tensor-reserved-differs", counters.reserved_differs);
}

void jm_tensor_stats(void)
{
    UInt n = tensors ? jm_map_n(tensors) : 0;
    jm_stats_row("jm.tensor", "live tensors", n, n * (sizeof(Tensor) + sizeof(Part)));
}
