// SPDX-License-Identifier: GPL-2.0-or-later
//
// What is resident of the program's mappings; see pages.h. mappings.c knows which there are and whose, smaps.c what the
// kernel has of them; a sample brings the two together.
//
// What counts is what htop calls RES, and /proc/PID/smaps Rss: the pages that the process has in memory, those it
// shares with others in full. So a program's figures do not depend on who else runs, as those of its heap do not. Pages
// in huge pages of their own file system, which Rss leaves out, are added. The share that is the process's own of what
// it shares (Pss), and what is swapped out, are told beside it.

#include "pages/pages.h"
#include "base/clock.h"
#include "base/options.h"
#include "cuda/device_blocks.h"
#include "cuda/query.h"
#include "driver/driver.h"
#include "heap/blocks.h"
#include "ledger/ledger.h"
#include "pages/mappings.h"
#include "pages/processes.h"
#include "pages/smaps.h"
#include "stack/scope.h"
#include "trace/trace.h"

static ULong smaller(ULong a, ULong b)
{
    return a < b ? a : b;
}

// ---- samples -------------------------------------------------------------------------------------------------

// A piece is measured by reading eight bytes a page: for the gigabytes that a driver reserves that would take long.
#define MOST_MEASURED ((ULong)1 << 30)

static Word cursor; // the first piece that ends after the last mapping seen
static Int pagemap;

static ULong overlap(const Piece *piece, const Vma *vma)
{
    Addr start = piece->start > vma->start ? piece->start : vma->start;
    Addr end = piece->end < vma->end ? piece->end : vma->end;
    return end - start;
}

// The process as the kernel has it, in one sample: what books that add up are made of.
static struct {
    ULong resident; // all of it
    ULong heap;     // in the mappings of the core's malloc
    ULong valgrind; // in the core's and the tool's own
    ULong devices;  // in the program's mappings of what is the driver's
    ULong blocks;   // in pieces, of blocks that have accounts of their own
    // What those blocks have in pieces by their size, and custom allocators' wherever they are.
    ULong blocks_bytes;
    ULong custom_bytes;
    double share;    // Pss of all but Valgrind's and devices', and of device blocks in pieces
    ULong untouched; // of large heap blocks, what lies in pages that are not in memory
    Bool is_new;     // since it was last told
} process;

static ULong *part_of_process(const NSegment *segment)
{
    if (segment->kind == SkAnonV || segment->kind == SkFileV)
        return &process.valgrind;
    if (segment->isCH)
        return &process.heap;
    const HChar *path = segment->kind == SkFileC ? VG_(am_get_filename)(segment) : NULL;
    if ((path && jm_mappings_is_device(path)) || jm_driver_is_mapped(segment->start))
        return &process.devices;
    return NULL;
}

// How many bytes of a part of one of the kernel's mappings are in pages of that sort, while those mappings are read.
// False: the kernel does not say, or it would take too long.
static Bool measure_mapped(Addr start, Addr end, PageSort sort, ULong *bytes)
{
    if (!pagemap)
        pagemap = jm_pagemap_open();
    return end - start <= MOST_MEASURED && jm_pagemap_measure(pagemap, start, end, sort, bytes);
}

// How much of a mapping of the kernel's a part of it holds, where the whole says nothing of it.
static ULong measure_part(const Vma *vma, Addr start, Addr end, PageSort sort)
{
    if (vma->resident == 0 || vma->resident == vma->end - vma->start)
        return vma->resident ? end - start : 0;
    ULong resident;
    if (!measure_mapped(start, end, sort, &resident))
        resident =
            (ULong)((double)vma->resident * (end - start) / (vma->end - vma->start)) / VKI_PAGE_SIZE * VKI_PAGE_SIZE;
    return resident;
}

// How much of what is swapped out of a mapping of the kernel's is of a part of it.
static ULong swapped_part(const Vma *vma, Addr start, Addr end)
{
    ULong swapped;
    if (!vma->swapped || (start == vma->start && end == vma->end))
        return vma->swapped;
    if (!measure_mapped(start, end, PAGE_SWAPPED, &swapped))
        swapped = (ULong)((double)vma->swapped * (end - start) / (vma->end - vma->start));
    return smaller(swapped, vma->swapped); // of memory that is shared, the kernel tells a share
}

// The kernel's mappings may have several of the core's segments in them.
static void count_in_process(const Vma *vma)
{
    ULong others = 0; // Valgrind's and devices'
    process.resident += vma->resident;
    for (Addr at = vma->start; at < vma->end && vma->resident;) {
        const NSegment *segment = VG_(am_find_nsegment)(at);
        if (!segment)
            break;
        Addr end = smaller(vma->end - 1, segment->end) + 1;
        ULong *part = part_of_process(segment);
        if (part) {
            ULong resident =
                at == vma->start && end == vma->end ? vma->resident : measure_part(vma, at, end, PAGE_PRESENT);
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
    return measure_part(vma, start, start + overlap(piece, vma), sort);
}

// Of pieces from the cursor on: `in_vma` becomes what each has of one of the kernel's mappings. What is not certain may
// be a page that a child has from its parent, or the page of zeroes: of that the kernel counts none, so as much as it
// counts besides is handed out.
static void measure_pieces(const Vma *vma, Word end)
{
    ULong left = vma->resident;
    for (Word i = cursor; i < end; i++) {
        Piece *piece = jm_piece_at(i);
        piece->in_vma = smaller(measure_piece(vma, piece, PAGE_CERTAIN), left);
        left -= piece->in_vma;
    }
    for (Word i = cursor; i < end && left; i++) {
        Piece *piece = jm_piece_at(i);
        ULong present = measure_piece(vma, piece, PAGE_PRESENT);
        ULong more = present > piece->in_vma ? smaller(present - piece->in_vma, left) : 0;
        piece->in_vma += more;
        left -= more;
    }
}

// What a mapping of the kernel's holds goes to the pieces in it. Often that is one, for the whole of it. But the kernel
// makes one of neighbours that look alike; then it is asked which pages are there, unless all are.
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
        jm_holder_at(piece->holder)->swapped_bytes += swapped_part(vma, start, start + overlap(piece, vma));
    }
}

// What has an account of its own, and lies in a mapping: the blocks of a custom allocator, and of CUDA where it is the
// program that maps the memory.
static void leave_out(Addr address, ULong bytes, ULong (*backed)(Addr start, Addr end))
{
    for (Word i = jm_piece_first_after(address); bytes && i < jm_pieces_n() && jm_piece_at(i)->start < address + bytes;
         i++) {
        Piece *piece = jm_piece_at(i);
        Addr start = piece->start > address ? piece->start : address;
        ULong part = backed(start, smaller(piece->end, address + bytes));
        ULong resident = smaller(piece->measured, part);
        piece->measured -= resident;
        process.blocks += resident;
        process.blocks_bytes += part;
    }
}

static ULong backed_by_all(Addr start, Addr end)
{
    return end - start;
}

// So that an address means one thing on host and device, the driver reserves the device's in the process: mappings that
// nobody may touch. There is nothing behind them here.
static ULong backed_where_accessible(Addr start, Addr end)
{
    ULong backed = 0;
    for (Addr at = start; at < end;) {
        const NSegment *segment = VG_(am_find_nsegment)(at);
        if (!segment)
            break;
        Addr next = smaller(end - 1, segment->end) + 1;
        if (segment->hasR || segment->hasW || segment->hasX)
            backed += next - at;
        at = next;
    }
    return backed;
}

// A card's memory is not the process's, whatever lies at its addresses. Imported memory is not counted.
static void leave_out_device(Addr address, ULong bytes, Kind kind)
{
    Side side = jm_kind_side(kind);
    if (side == SIDE_HOST || (side == SIDE_DEVICE && !jm_query_is_apart()))
        leave_out(address, bytes, backed_where_accessible);
}

static void leave_out_custom(Addr address, ULong bytes)
{
    process.custom_bytes += bytes;
    leave_out(address, bytes, backed_by_all);
}

// Smaller blocks that nobody writes to make no difference, and there may be many.
#define LEAST_MEASURED (8 * 1024)

// What the program asked malloc for and has not written to, or what is swapped out of it.
static void measure_untouched(Addr address, ULong bytes)
{
    ULong present;
    if (jm_pagemap_measure(pagemap, address, address + bytes, PAGE_PRESENT, &present))
        process.untouched += bytes - present;
}

// Who opens less often than this sees nothing more.
#define MIN_INTERVAL_MS 100
// A sample's cost, and this many times as much until the next: at most 1.5 % of the run.
#define COST_DIVISOR 64

static ULong next_due_ms;

static void sample(void)
{
    jm_mappings_extend_main_stack();
    for (UInt id = 1; id < jm_holders_n(); id++)
        jm_holder_at(id)->shared_bytes = jm_holder_at(id)->swapped_bytes = 0;
    for (Word i = 0; i < jm_pieces_n(); i++)
        jm_piece_at(i)->present = jm_piece_at(i)->share = 0;
    cursor = 0;
    pagemap = 0;
    VG_(memset)(&process, 0, sizeof process);
    Bool is_whole = jm_smaps_each(0, share_out);
    jm_processes_sample();
    if (!pagemap)
        pagemap = jm_pagemap_open();
    jm_blocks_each_large(LEAST_MEASURED, measure_untouched);
    if (pagemap > 0)
        VG_(close)(pagemap);
    if (!is_whole)
        return;
    for (Word i = 0; i < jm_pieces_n(); i++)
        jm_piece_at(i)->measured = jm_piece_at(i)->present;
    jm_device_blocks_each(leave_out_device);
    for (Word i = 0; i < jm_pieces_n(); i++) {
        const Piece *piece = jm_piece_at(i);
        if (piece->measured < piece->present)
            process.share -= (double)(piece->present - piece->measured) / piece->present * piece->share;
    }
    jm_blocks_each_custom(leave_out_custom);
    for (Word i = 0; i < jm_pieces_n(); i++) {
        const Piece *piece = jm_piece_at(i);
        if (piece->measured)
            jm_holder_at(piece->holder)->shared_bytes +=
                (ULong)((double)piece->measured / piece->present * piece->share);
    }
    // What has fallen first: the total must not rise above what it ever was.
    for (Word i = 0; i < jm_pieces_n(); i++)
        if (jm_piece_at(i)->measured < jm_piece_at(i)->resident)
            jm_piece_set_resident(jm_piece_at(i), jm_piece_at(i)->measured);
    for (Word i = 0; i < jm_pieces_n(); i++)
        jm_piece_set_resident(jm_piece_at(i), jm_piece_at(i)->measured);
    process.is_new = True;
}

void jm_pages_sample(Bool is_due)
{
    if (!jm_options.pages || !jm_pieces_n())
        return;
    ULong begin = jm_clock_ms();
    if (!is_due && begin < next_due_ms)
        return;
    jm_processes_find(is_due);
    sample();
    ULong end = jm_clock_ms();
    ULong pause = (end - begin - jm_processes_spent_ms() + 1) * COST_DIVISOR;
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
        // A thread's scopes that are younger than one it is still in are inside of it.
        if (piece->scope < scope || piece->tid != tid || piece->end - piece->start > MOST_MEASURED)
            continue;
        if (file < 0)
            file = jm_pagemap_open();
        ULong resident;
        if (!jm_pagemap_measure(file, piece->start, piece->end, PAGE_PRESENT, &resident))
            break;
        jm_piece_set_resident(piece, resident);
        UInt node;
        Kind kind;
        OwnerId owner;
        jm_ledger_describe(jm_holder_at(piece->holder)->account, &node, &kind, &owner);
        jm_scope_grow(tid, kind, (Long)resident - (Long)piece->in_scope, resident && !piece->in_scope);
        piece->in_scope = resident;
    }
    if (file >= 0)
        VG_(close)(file);
}

// A function that maps a file, reads it and lets go of it may do so between two samples: it would seem never to have
// held anything. Smaller mappings make no difference to a peak.
#define LEAST_SEEN ((SizeT)1 << 20)
// A page costs about 25 ns to look at: at most a 64th of the run, beyond what any program may have at once. Time itself
// is not measured, for a busy machine would then decide what is seen.
#define SEEN_AT_ONCE ((ULong)4 << 30)
#define SEEN_EACH_MS ((ULong)600 * VKI_PAGE_SIZE)

static ULong seen_bytes;

// Blocks that have accounts of their own do not lie in files.
static Bool is_file(const Piece *piece)
{
    const NSegment *segment = VG_(am_find_nsegment)(piece->start);
    const HChar *path = segment && segment->kind == SkFileC ? VG_(am_get_filename)(segment) : NULL;
    return path && !jm_mappings_is_device(path) && !jm_driver_is_mapped(piece->start);
}

void jm_pages_before_unmap(Addr start, SizeT bytes)
{
    if (!jm_options.pages || bytes < LEAST_SEEN || bytes > MOST_MEASURED)
        return;
    if (seen_bytes > SEEN_AT_ONCE + jm_clock_ms() * SEEN_EACH_MS)
        return;
    Int file = -1;
    for (Word i = jm_piece_first_after(start); i < jm_pieces_n() && jm_piece_at(i)->start < start + bytes; i++) {
        Piece *piece = jm_piece_at(i);
        if (piece->end - piece->start < LEAST_SEEN || piece->end - piece->start > MOST_MEASURED || !is_file(piece))
            continue;
        if (file < 0)
            file = jm_pagemap_open();
        ULong resident;
        seen_bytes += piece->end - piece->start;
        if (!jm_pagemap_measure(file, piece->start, piece->end, PAGE_PRESENT, &resident))
            break;
        if (resident > piece->resident)
            jm_piece_set_resident(piece, resident);
    }
    if (file >= 0)
        VG_(close)(file);
}

// ---- the rest ------------------------------------------------------------------------------------------------

void jm_pages_init(void)
{
    if (!jm_options.pages)
        return;
    if (!jm_smaps_works()) {
        jm_options.pages = False;
        return;
    }
    jm_mappings_init();
    jm_ledger_keep_allocated_peak();
}

void jm_pages_write(void)
{
    for (UInt id = 1; id < jm_holders_n(); id++) {
        Holder *h = jm_holder_at(id);
        const ULong now[3] = {h->virtual_bytes, h->shared_bytes, h->swapped_bytes};
        if (VG_(memcmp)(h->told, now, sizeof now) == 0)
            continue;
        VG_(memcpy)(h->told, now, sizeof now);
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

// The kernel gives a child none of a file's pages until it touches them: were they looked at now, they would seem its
// own later.
void jm_pages_after_fork_in_child(void)
{
    next_due_ms = jm_clock_ms() + MIN_INTERVAL_MS;
    process.is_new = False;
    jm_processes_after_fork_in_child();
    for (UInt id = 1; id < jm_holders_n(); id++)
        VG_(memset)(jm_holder_at(id)->told, 0, sizeof jm_holder_at(id)->told);
}
