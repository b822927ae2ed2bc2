// SPDX-License-Identifier: GPL-2.0-or-later
//
// Samples the resident bytes of the program's mappings; see pages.h. mappings.c knows the mappings and their owners,
// smaps.c the kernel's figures; a sample matches the two.
//
// Resident means RES in htop and Rss in /proc/PID/smaps: pages in memory, shared ones in full. So a program's figures,
// like those of its heap, do not depend on other processes. hugetlbfs pages, which Rss leaves out, are added. The
// proportional share (Pss) and swapped bytes are written separately.

#include "pages/pages.h"
#include "base/client_memory.h"
#include "base/clock.h"
#include "base/kernel.h"
#include "base/libc.h"
#include "base/options.h"
#include "calls/scope.h"
#include "device/blocks.h"
#include "driver/driver.h"
#include "heap/blocks.h"
#include "host/host.h"
#include "ledger/ledger.h"
#include "machine/manifest.h"
#include "pages/mappings.h"
#include "pages/processes.h"
#include "pages/smaps.h"
#include "trace/trace.h"

// Larger pieces are not measured by page: pagemap has eight bytes per page, and drivers reserve gigabytes.
#define MOST_MEASURED ((ULong)1 << 30)

static Word cursor; // the first piece that ends after the last kernel mapping read
static Int pagemap;

static ULong overlap(const Piece *piece, const Vma *vma)
{
    Addr start = piece->start > vma->start ? piece->start : vma->start;
    Addr end = piece->end < vma->end ? piece->end : vma->end;
    return end - start;
}

// Figures of the whole process in one sample, in bytes. Reports reconcile accounts with them.
static struct {
    ULong resident; // the whole process
    ULong heap;     // in mappings of the core's malloc
    ULong valgrind; // in mappings of the core and the tool
    ULong devices;  // in the program's mappings of driver memory
    ULong blocks;   // in pieces, but in blocks with accounts of their own
    // Sizes, resident or not, of those blocks within pieces, and of custom allocators' blocks anywhere.
    ULong blocks_bytes;
    ULong custom_bytes;
    double share;    // Pss without Valgrind, devices and device blocks in pieces
    ULong all_share; // Pss of the whole process
    ULong untouched; // bytes of large heap blocks in pages that are not in memory
    Bool is_new;     // not written yet
} process;

static ULong *part_of_process(const Mapping *mapping)
{
    if (!mapping->is_programs && mapping->as != MAPPED_NOTHING)
        return &process.valgrind;
    if (mapping->is_heap)
        return &process.heap;
    if ((mapping->path && jm_mappings_is_device(mapping->path)) || jm_driver_is_mapped(mapping->start))
        return &process.devices;
    return NULL;
}

// Measures a part of a kernel mapping by page, during a sample. False if the kernel does not say, or it would take too
// long.
static Bool measure_mapped(Addr start, Addr end, PageSort sort, ULong *bytes)
{
    if (!pagemap)
        pagemap = jm_pagemap_open();
    return end - start <= MOST_MEASURED && jm_pagemap_measure(pagemap, start, end, sort, bytes);
}

// The part of `whole`, a kernel mapping's resident or swapped bytes, in a part of it; proportional if it cannot be
// measured. The kernel gives a share of swapped shared memory.
static ULong measure_part(const Vma *vma, ULong whole, Addr start, Addr end, PageSort sort)
{
    ULong bytes;
    if (!whole || (start == vma->start && end == vma->end))
        return whole;
    if (whole == vma->end - vma->start)
        return end - start;
    if (!measure_mapped(start, end, sort, &bytes))
        bytes = (ULong)((double)whole * (end - start) / (vma->end - vma->start)) / HOST_PAGE_BYTES * HOST_PAGE_BYTES;
    return jm_smaller(bytes, whole);
}

// One kernel mapping may contain several of the core's segments.
static void count_in_process(const Vma *vma)
{
    ULong others = 0; // Valgrind and devices
    process.resident += vma->resident;
    process.all_share += vma->shared + (vma->shared < vma->resident ? 512 : 0); // the kernel rounds down to 1024
    for (Addr at = vma->start; at < vma->end && vma->resident;) {
        Mapping mapping;
        if (!host_mapping_at(at, &mapping) && mapping.end <= at)
            break;
        Addr end = jm_smaller(vma->end, mapping.end);
        ULong *part = part_of_process(&mapping);
        if (part) {
            const ULong resident = measure_part(vma, vma->resident, at, end, PAGE_PRESENT);
            *part += resident;
            others += part == &process.heap ? 0 : resident;
        }
        at = end;
    }
    if (vma->resident > others)
        process.share += (double)(vma->resident - others) / vma->resident * vma->shared;
}

static ULong measure_piece(const Vma *vma, const Piece *piece, PageSort sort)
{
    Addr start = piece->start > vma->start ? piece->start : vma->start;
    return measure_part(vma, sort == PAGE_SWAPPED ? vma->swapped : vma->resident, start, start + overlap(piece, vma),
                        sort);
}

// Sets `in_vma` of the pieces from the cursor on to their parts of one kernel mapping: first their certain pages, then
// others up to Rss, which may be shared with a parent, or the zero page, which Rss leaves out.
static void measure_pieces(const Vma *vma, Word end)
{
    ULong left = vma->resident;
    for (Word i = cursor; i < end; i++) {
        Piece *piece = jm_piece_at(i);
        piece->in_vma = jm_smaller(measure_piece(vma, piece, PAGE_CERTAIN), left);
        left -= piece->in_vma;
    }
    for (Word i = cursor; i < end && left; i++) {
        Piece *piece = jm_piece_at(i);
        ULong present = measure_piece(vma, piece, PAGE_PRESENT);
        ULong more = present > piece->in_vma ? jm_smaller(present - piece->in_vma, left) : 0;
        piece->in_vma += more;
        left -= more;
    }
}

// Divides a kernel mapping's bytes among the pieces in it. Often that is one piece for the whole mapping. But the
// kernel merges similar neighbours; then pages are measured, unless all are resident.
static void share_out(const Vma *vma)
{
    count_in_process(vma);
    while (cursor < jm_pieces_n() && jm_piece_at(cursor)->end <= vma->start)
        cursor++;
    if (!vma->resident && !vma->swapped)
        return;
    ULong covered = 0;
    Word end = cursor;
    for (; end < jm_pieces_n() && jm_piece_at(end)->start < vma->end; end++)
        covered += overlap(jm_piece_at(end), vma);
    if (end == cursor + 1 && covered == vma->end - vma->start)
        jm_piece_at(cursor)->in_vma = vma->resident;
    else
        measure_pieces(vma, end);
    for (Word i = cursor; i < end; i++) {
        Piece *piece = jm_piece_at(i);
        Addr start = piece->start > vma->start ? piece->start : vma->start;
        piece->present += piece->in_vma;
        if (piece->in_vma)
            piece->share += (ULong)((double)piece->in_vma / vma->resident * vma->shared);
        jm_holder_at(piece->holder)->swapped_bytes += measure_piece(vma, piece, PAGE_SWAPPED);
        ULong copied = vma->anonymous; // all of it, unless the kernel has merged neighbours
        if (copied && covered != overlap(piece, vma))
            measure_mapped(start, start + overlap(piece, vma), PAGE_MODIFIED, &copied);
        piece->copied_now += jm_smaller(copied, piece->in_vma);
    }
}

// Subtracts blocks with accounts of their own from pieces: custom allocators' blocks, and CUDA's in memory that the
// program maps.
static void leave_out(Addr address, ULong bytes, ULong (*backed)(Addr start, Addr end))
{
    for (Word i = jm_piece_first_after(address); bytes && i < jm_pieces_n() && jm_piece_at(i)->start < address + bytes;
         i++) {
        Piece *piece = jm_piece_at(i);
        Addr start = piece->start > address ? piece->start : address;
        ULong part = backed(start, jm_smaller(piece->end, address + bytes));
        ULong resident = jm_smaller(piece->measured, part);
        piece->measured -= resident;
        process.blocks += resident;
        process.blocks_bytes += part;
    }
}

static ULong backed_by_all(Addr start, Addr end)
{
    return end - start;
}

// The driver reserves the device's addresses in the process (unified addressing), in inaccessible mappings with no
// memory behind them.
static ULong backed_where_accessible(Addr start, Addr end)
{
    ULong backed = 0;
    for (Addr at = start; at < end;) {
        Mapping mapping;
        if (!host_mapping_at(at, &mapping) && mapping.end <= at)
            break;
        Addr next = jm_smaller(end, mapping.end);
        if (mapping.is_readable || mapping.is_writable || mapping.is_executable)
            backed += next - at;
        at = next;
    }
    return backed;
}

// Skip a discrete GPU's memory, which is not the process's, and imported memory, which is not counted.
static void leave_out_device(Addr address, ULong bytes, Kind kind)
{
    Side side = jm_kind_side(kind);
    if (side == SIDE_HOST || (side == SIDE_DEVICE && !jm_memory_is_discrete()))
        leave_out(address, bytes, backed_where_accessible);
}

static void leave_out_custom(Addr address, ULong bytes)
{
    process.custom_bytes += bytes;
    leave_out(address, bytes, backed_by_all);
}

// Smaller unwritten blocks make no difference, and there may be many.
#define LEAST_MEASURED (8 * 1024)

// Adds bytes of a heap block that were never written, or are swapped out.
static void measure_untouched(Addr address, ULong bytes)
{
    ULong present;
    if (jm_pagemap_measure(pagemap, address, address + bytes, PAGE_PRESENT, &present))
        process.untouched += bytes - present;
}

// Sampling more often shows nothing new.
#define MIN_INTERVAL_MS 100
// After a sample, pause for this many times its cost: at most 1.5 % of the run.
#define COST_DIVISOR 64

static ULong next_due_ms;

// Returns the time that other processes took, in ms.
static ULong sample(Bool is_due)
{
    host_update_mappings();
    jm_mappings_extend_main_stack();
    for (UInt id = 1; id < jm_holders_n(); id++)
        jm_holder_at(id)->shared_bytes = jm_holder_at(id)->swapped_bytes = 0;
    for (Word i = 0; i < jm_pieces_n(); i++)
        jm_piece_at(i)->present = jm_piece_at(i)->share = jm_piece_at(i)->copied_now = 0;
    cursor = 0;
    pagemap = 0;
    memset(&process, 0, sizeof process);
    Bool is_whole = jm_smaps_each(0, share_out);
    const ULong others_ms = jm_processes_sample(is_due, process.all_share);
    if (!pagemap)
        pagemap = jm_pagemap_open();
    jm_blocks_each(False, LEAST_MEASURED, measure_untouched);
    jm_close(pagemap);
    if (!is_whole)
        return others_ms;
    for (Word i = 0; i < jm_pieces_n(); i++)
        jm_piece_at(i)->measured = jm_piece_at(i)->present;
    jm_device_blocks_each(leave_out_device);
    for (Word i = 0; i < jm_pieces_n(); i++) {
        const Piece *piece = jm_piece_at(i);
        if (piece->measured < piece->present)
            process.share -= (double)(piece->present - piece->measured) / piece->present * piece->share;
    }
    jm_blocks_each(True, 0, leave_out_custom);
    for (Word i = 0; i < jm_pieces_n(); i++) {
        const Piece *piece = jm_piece_at(i);
        if (piece->measured)
            jm_holder_at(piece->holder)->shared_bytes +=
                (ULong)((double)piece->measured / piece->present * piece->share);
    }
    // Decreases first, so that the total never exceeds its true maximum.
    for (Word i = 0; i < jm_pieces_n(); i++)
        if (jm_piece_at(i)->measured < jm_piece_at(i)->resident)
            jm_piece_set_resident(jm_piece_at(i), jm_piece_at(i)->measured, jm_piece_at(i)->copied_now);
    for (Word i = 0; i < jm_pieces_n(); i++)
        jm_piece_set_resident(jm_piece_at(i), jm_piece_at(i)->measured, jm_piece_at(i)->copied_now);
    process.is_new = True;
    return others_ms;
}

void jm_pages_sample(Bool is_due)
{
    if (!jm_options.pages || !jm_pieces_n())
        return;
    ULong begin = jm_clock_ms();
    if (!is_due && begin < next_due_ms)
        return;
    const ULong others_ms = sample(is_due);
    ULong end = jm_clock_ms();
    ULong pause = (end - begin - others_ms + 1) * COST_DIVISOR;
    next_due_ms = end + (pause > MIN_INTERVAL_MS ? pause : MIN_INTERVAL_MS);
}

void jm_pages_measure_scope(ThreadId tid)
{
    UInt scope = jm_scope_current(tid);
    if (!jm_options.pages || !scope)
        return;
    Int file = -1;
    for (Word i = 0; i < jm_pieces_n(); i++) {
        Piece *piece = jm_piece_at(i);
        // A scope of the thread with a larger id is inside the current one.
        if (piece->scope < scope || piece->tid != tid || piece->end - piece->start > MOST_MEASURED)
            continue;
        if (file < 0)
            file = jm_pagemap_open();
        ULong resident;
        if (!jm_pagemap_measure(file, piece->start, piece->end, PAGE_PRESENT, &resident))
            break;
        jm_piece_set_resident(piece, resident, piece->copied);
        Kind kind = jm_ledger_key(jm_holder_at(piece->holder)->account).kind;
        jm_scope_grow(tid, kind, (Long)resident - (Long)piece->in_scope, resident && !piece->in_scope);
        piece->in_scope = resident;
    }
    jm_close(file);
}

// A function may map, read and unmap a file between two samples, which would then miss it. Smaller mappings make no
// difference to a peak.
#define LEAST_SEEN ((SizeT)1 << 20)
// Inspecting a page costs about 25 ns: at most a 64th of the run, on top of a fixed allowance. Counts pages instead of
// measuring time, so that a busy machine does not change the results.
#define SEEN_AT_ONCE ((ULong)4 << 30)
#define SEEN_EACH_MS ((ULong)600 * HOST_PAGE_BYTES)

static ULong seen_bytes;

void jm_pages_before_unmap(Addr start, SizeT bytes)
{
    if (!jm_options.pages || bytes < LEAST_SEEN || bytes > MOST_MEASURED)
        return;
    if (seen_bytes > SEEN_AT_ONCE + jm_clock_ms() * SEEN_EACH_MS)
        return;
    Int file = -1;
    for (Word i = jm_piece_first_after(start); i < jm_pieces_n() && jm_piece_at(i)->start < start + bytes; i++) {
        Piece *piece = jm_piece_at(i);
        Mapping mapping;
        // Only files: they contain no blocks with accounts of their own.
        if (piece->end - piece->start < LEAST_SEEN || piece->end - piece->start > MOST_MEASURED ||
            !host_mapping_at(piece->start, &mapping) || !mapping.path || jm_mappings_is_device(mapping.path) ||
            jm_driver_is_mapped(piece->start))
            continue;
        if (file < 0)
            file = jm_pagemap_open();
        ULong resident;
        seen_bytes += piece->end - piece->start;
        if (!jm_pagemap_measure(file, piece->start, piece->end, PAGE_PRESENT, &resident))
            break;
        if (resident > piece->resident)
            jm_piece_set_resident(piece, resident, piece->copied);
    }
    jm_close(file);
}

void jm_pages_init(void)
{
    if (!jm_options.pages)
        return;
    if (!jm_smaps_works()) {
        jm_options.pages = False;
        return;
    }
    jm_mappings_init();
    jm_processes_begin();
    jm_ledger_keep_allocated_peak();
}

void jm_pages_write(void)
{
    for (UInt id = 1; id < jm_holders_n(); id++) {
        Holder *h = jm_holder_at(id);
        const ULong now[3] = {h->virtual_bytes, h->shared_bytes, h->swapped_bytes};
        if (memcmp(h->written, now, sizeof now) == 0)
            continue;
        memcpy(h->written, now, sizeof now);
        jm_trace_pages(h->account, h->virtual_bytes, h->shared_bytes, h->swapped_bytes);
    }
}

void jm_pages_write_process(void)
{
    if (!process.is_new)
        return;
    process.is_new = False;
    ULong time = jm_clock_cached();
    jm_trace_system(time, "resident", process.resident);
    jm_trace_system(time, "resident-heap", process.heap);
    jm_trace_system(time, "resident-valgrind", process.valgrind);
    jm_trace_system(time, "resident-devices", process.devices);
    jm_trace_system(time, "resident-blocks", process.blocks);
    jm_trace_system(time, "blocks-in-mappings", process.blocks_bytes);
    jm_trace_system(time, "custom-blocks", process.custom_bytes);
    jm_trace_system(time, "heap-untouched", process.untouched);
    jm_trace_system(time, "pss", process.share > 0 ? (ULong)process.share : 0);
    jm_processes_write(time);
}

// A child has none of a file's pages until it touches them. Sampling now would make them look like new memory of the
// child later, so wait.
void jm_pages_after_fork_in_child(void)
{
    next_due_ms = jm_clock_ms() + MIN_INTERVAL_MS;
    process.is_new = False;
    jm_processes_begin();
    for (UInt id = 1; id < jm_holders_n(); id++)
        memset(jm_holder_at(id)->written, 0, sizeof jm_holder_at(id)->written);
}
