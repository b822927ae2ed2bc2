// SPDX-License-Identifier: GPL-2.0-or-later
//
// Tensors inside segments; see tensor.h. With expandable segments a tensor may span several chunks of memory that are
// mapped one after another, so it is a list of parts.

#include "tensors/tensor.h"
#include "base/clock.h"
#include "base/hooks.h"
#include "base/map.h"
#include "calls/scope.h"
#include "device/blocks.h"
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

static Map tensors = JM_MAP("jm.tensor");
static ULong live_bytes;

static struct {
    ULong without_segment; // reported, but in no known segment
    ULong unknown_free;
    ULong allocated_differs; // reports with totals other than the ledger's
    ULong reserved_differs;
} counters;

// True if a part in the segment is possible: all parts of a tensor must be in one memory space, since its bytes move
// from the segments' accounts to one account.
static Bool fits(const Tensor *t, const DeviceBlock *segment)
{
    Kind kind = segment->kind;
    if (!segment->account || (t->is_exact && !jm_device_block_is_segment(segment)))
        return False;
    if (t->account)
        kind = jm_ledger_key(t->account).kind;
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

// The parts are back in their segments.
static void end(Tensor *t, AccountId account)
{
    MemoryBlock memory = as_memory(t, account);
    jm_block_taken_back(&memory);
    if (t->bytes >= JM_LEAST_COPY)
        jm_hooks.range_ended(t->key, t->bytes);
    jm_map_remove(&tensors, t->key);
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
void jm_tensor_segment_ended(DeviceBlock *segment)
{
    for (Tensor *t = jm_map_next(&tensors, NULL), *next; t; t = next) {
        next = jm_map_next(&tensors, t);
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
}

// The framework's totals, words[2] and words[3], are per device; the ledger's are of all devices.
static void check_totals(const UWord *words, Int device)
{
    static Int only_device = -1;
    static Bool has_several;
    if (only_device < 0)
        only_device = device;
    has_several |= device != only_device;
    if (has_several)
        return;
    counters.allocated_differs += words[2] != live_bytes;
    counters.reserved_differs += words[3] != jm_device_cached_bytes();
}

static void begin(ThreadId tid, Addr address, ULong bytes, Bool is_exact)
{
    Tensor *t = host_alloc_zeroed("jm.tensor", 1, sizeof *t);
    t->key = address;
    t->bytes = bytes;
    t->is_exact = is_exact;
    if (jm_map_find(&tensors, t->key) || !find_parts(t)) {
        counters.without_segment += !is_exact;
        discard(t);
        return;
    }
    jm_map_add(&tensors, t);
    Bool ignored;
    NodeId node = jm_scope_capture(tid, &ignored);
    t->account = jm_account_handed_out(node, t->parts[0].segment->kind);
    hold_parts(t, t->account);
    MemoryBlock memory = as_memory(t, t->account);
    jm_block_handed_out(&memory, jm_clock_now());
}

static void give_back(ThreadId tid, Addr address, Bool is_exact)
{
    Tensor *t = jm_map_find(&tensors, address);
    if (t) {
        AccountId account = jm_live_tensor_end(tid, address, t->account);
        let_go_of_parts(t, account);
        end(t, account);
    } else {
        counters.unknown_free += !is_exact;
    }
}

// c10::Device is two bytes, type and index, in the lower half of a register; the type 1 is CUDA
// (c10/core/DeviceType.h).
#define C10_CUDA 1

void jm_tensor_reported(ThreadId tid, const UWord *words, UInt device_word)
{
    UWord device = words[device_word];
    Long bytes = (Long)words[1];
    if ((device & 0xff) != C10_CUDA)
        return;
    if (bytes > 0)
        begin(tid, words[0], bytes, False);
    else if (bytes < 0)
        give_back(tid, words[0], False);
    if (device_word == 4)
        check_totals(words, (signed char)(device >> 8));
    jm_snapshot_event();
}

void jm_tensor_handed_out(ThreadId tid, Addr address, ULong bytes)
{
    begin(tid, address, bytes, True);
    jm_snapshot_event();
}

void jm_tensor_taken_back(ThreadId tid, Addr address)
{
    give_back(tid, address, True);
    jm_snapshot_event();
}

void jm_tensor_handed_out_by_program(ThreadId tid, Addr address, ULong bytes)
{
    Addr end;
    DeviceBlock *block = jm_device_block_around(address, &end);
    if (!block || !bytes || bytes > end - address)
        return;
    jm_device_block_become_segment(block);
    jm_tensor_handed_out(tid, address, bytes);
}

void jm_tensor_write_counters(void)
{
    jm_trace_nonzero("tensor-without-segment", counters.without_segment);
    jm_trace_nonzero("tensor-free-unknown", counters.unknown_free);
    jm_trace_nonzero("tensor-allocated-differs", counters.allocated_differs);
    jm_trace_nonzero("tensor-reserved-differs", counters.reserved_differs);
}
