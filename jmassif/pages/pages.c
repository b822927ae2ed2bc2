// SPDX-License-Identifier: GPL-2.0-or-later
//
// Mappings and what is resident of them; see pages.h.
//
// What counts is what htop calls RES, and /proc/PID/smaps Rss: the pages that the process has in memory, those it
// shares with others in full. So a program's figures do not depend on who else runs, as those of its heap do not. Pages
// in huge pages of their own file system, which Rss leaves out, are added. The share that is the process's own of what
// it shares (Pss), and what is swapped out, are told beside it.
//
// The program's heap lies in mappings too, but they are the core's (its replacement of malloc made them), and the core
// does not announce them: whatever is announced is none of the heap's. Neither is what the core has mapped for itself.

#include "pages/pages.h"
#include "pages/smaps.h"
#include "ledger/account.h"
#include "heap/blocks.h"
#include "base/clock.h"
#include "cuda/device_blocks.h"
#include "driver/driver.h"
#include "base/options.h"
#include "stack/scope.h"
#include "stack/stack.h"
#include "base/stats.h"
#include "stack/symbol.h"
#include "base/table.h"
#include "trace/trace.h"

// The mappings of one account.
typedef struct {
    AccountId account;
    Bool is_object; // of a program's or library's file
    ULong virtual_bytes;
    ULong shared_bytes; // Pss
    ULong swapped_bytes;
    ULong told[3]; // these, when they were last told
} Holder;

// A part of a mapping: as a whole, or what later mappings have left of it.
typedef struct {
    Addr start;
    Addr end;
    UInt holder;
    ThreadId tid;
    UInt scope;     // that the thread was in; 0: none
    ULong resident; // as the ledger has it
    ULong in_scope; // of these, what scopes were told of
    // While a sample is being taken: what is there, what of that counts here, and the process's share of it.
    ULong present;
    ULong measured;
    ULong share;
} Piece;

static Table holders = JM_TABLE("jm.pages.holder", Holder);
static Index holder_index = JM_INDEX("jm.pages.holder"); // by account
static XArray *pieces;                                   // of Piece, in order of address
static Addr main_stack_end;                              // 0: not yet known
static Bool has_started;                                 // the program runs: what comes now is its own doing

static inline Word n_pieces(void)
{
    return VG_(sizeXA)(pieces);
}

static inline Piece *piece_at(Word i)
{
    return VG_(indexXA)(pieces, i);
}

static inline Holder *holder_at(UInt id)
{
    return jm_table_at(&holders, id);
}

// ---- whose ---------------------------------------------------------------------------------------------------

static ULong holder_hash_of(UInt id)
{
    return jm_hash(holder_at(id)->account);
}

static UInt holder_of(AccountId account, Bool is_object)
{
    jm_index_reserve(&holder_index, holder_hash_of);
    UInt slot = (UInt)jm_hash(account) & holder_index.mask;
    while (holder_index.slots[slot]) {
        UInt id = holder_index.slots[slot];
        if (holder_at(id)->account == account)
            return id;
        slot = (slot + 1) & holder_index.mask;
    }
    UInt id = jm_table_add(&holders);
    holder_at(id)->account = account;
    holder_at(id)->is_object = is_object;
    holder_index.slots[slot] = id;
    holder_index.used++;
    return id;
}

static Bool begins_with(const HChar *text, const HChar *prefix)
{
    return VG_(strncmp)(text, prefix, VG_(strlen)(prefix)) == 0;
}

// Memory that has a name in a file system but is on no disk.
static Bool is_shared_memory(const HChar *path)
{
    return begins_with(path, "/dev/shm/") || begins_with(path, "/dev/hugepages/") || begins_with(path, "/memfd:") ||
           begins_with(path, "/SYSV");
}

// What is behind it is the driver's to tell. (The name of a buffer that is shared through a descriptor has no
// directory.)
static Bool is_device(const HChar *path)
{
    return (begins_with(path, "/dev/") && !is_shared_memory(path) && !VG_STREQ(path, "/dev/zero")) ||
           begins_with(path, "/dmabuf") || begins_with(path, "anon_inode:") || begins_with(path, "/anon_inode:");
}

static Bool is_library(const HChar *path)
{
    const HChar *name = VG_(basename)(path);
    return VG_(string_match)("*.so", name) || VG_(string_match)("*.so.*", name);
}

// The holder of what is now mapped there; 0: it is not counted.
static UInt holder_of_segment(const NSegment *segment, ThreadId tid)
{
    const HChar *path = segment->kind == SkFileC ? VG_(am_get_filename)(segment) : NULL;
    if (segment->isCH || (path && is_device(path)) || (tid != VG_INVALID_THREADID && jm_driver_is_mapping(tid)))
        return 0;
    // The page of the tool's own file that holds the core's trampolines is mapped for the program to run.
    if (path && VG_(string_match)("jmassif-*-linux", VG_(basename)(path)))
        return 0;
    Bool is_ignored = False;
    NodeId node = tid == VG_INVALID_THREADID ? 0 : jm_scope_capture(tid, &is_ignored);
    if (is_ignored)
        return 0;
    if (!path) {
        if (!node)
            return holder_of(jm_account_owned(0, KIND_ANON, jm_owner_by_name("app")), False);
        return holder_of(jm_account(node, KIND_ANON), False);
    }
    Bool is_object = !has_started || is_library(path);
    node = jm_stack_push_mapped(node, path, is_object);
    return holder_of(jm_account(node, is_shared_memory(path) ? KIND_ANON : KIND_FILE), is_object);
}

// ---- pieces --------------------------------------------------------------------------------------------------

// The first piece that ends after the address.
static Word first_after(Addr address)
{
    Word low = 0, high = n_pieces();
    while (low < high) {
        Word middle = (low + high) / 2;
        if (piece_at(middle)->end > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static Piece *piece_around(Addr address)
{
    Word i = first_after(address);
    return i < n_pieces() && piece_at(i)->start <= address ? piece_at(i) : NULL;
}

static void set_resident(Piece *piece, ULong bytes)
{
    if (piece->resident != bytes)
        jm_ledger_adjust(holder_at(piece->holder)->account, (Long)bytes - (Long)piece->resident);
    piece->resident = bytes;
}

static ULong smaller(ULong a, ULong b)
{
    return a < b ? a : b;
}

static void remove_piece(Word i)
{
    Piece *piece = piece_at(i);
    set_resident(piece, 0);
    holder_at(piece->holder)->virtual_bytes -= piece->end - piece->start;
    jm_ledger_debit(holder_at(piece->holder)->account, 0);
    VG_(removeIndexXA)(pieces, i);
}

// Parts the piece at the address, if there is one around it. Where its pages are is not known before the next sample.
static void part_at(Addr address)
{
    Word i = first_after(address);
    if (i == n_pieces() || piece_at(i)->start >= address)
        return;
    Piece *lower = piece_at(i);
    Piece upper = *lower;
    lower->end = upper.start = address;
    lower->resident = smaller(upper.resident, lower->end - lower->start);
    upper.resident -= lower->resident;
    lower->in_scope = smaller(upper.in_scope, lower->resident);
    upper.in_scope -= lower->in_scope;
    jm_ledger_credit(holder_at(upper.holder)->account, 0);
    VG_(insertIndexXA)(pieces, i + 1, &upper);
}

void jm_pages_unmapped(Addr start, SizeT bytes)
{
    if (!jm_options.pages)
        return;
    part_at(start);
    part_at(start + bytes);
    for (Word i = first_after(start); i < n_pieces() && piece_at(i)->start < start + bytes;)
        remove_piece(i);
}

// A library's variables that its file has no bytes for are mapped over a part of the file's mapping, or at the start
// behind the file: they are the library's like the rest. 0: it is none of these.
static UInt library_under(const NSegment *segment, Addr start)
{
    if (segment->kind != SkAnonC)
        return 0;
    const Piece *under = piece_around(has_started ? start : start - 1);
    return under && holder_at(under->holder)->is_object ? under->holder : 0;
}

static void map(Addr start, SizeT bytes, ThreadId tid)
{
    const NSegment *segment = VG_(am_find_nsegment)(start);
    if (!bytes || !segment)
        return;
    UInt holder = library_under(segment, start);
    jm_pages_unmapped(start, bytes);
    if (!holder)
        holder = holder_of_segment(segment, tid);
    if (!holder)
        return;
    Word i = first_after(start);
    // A heap of the program's own grows by brk in small steps.
    if (i > 0 && piece_at(i - 1)->end == start && piece_at(i - 1)->holder == holder && piece_at(i - 1)->tid == tid &&
        !piece_at(i - 1)->scope) {
        piece_at(i - 1)->end += bytes;
        holder_at(holder)->virtual_bytes += bytes;
        return;
    }
    Piece piece = {
        start, start + bytes, holder, tid, tid == VG_INVALID_THREADID ? 0 : jm_scope_current(tid), 0, 0, 0, 0, 0};
    VG_(insertIndexXA)(pieces, i, &piece);
    holder_at(holder)->virtual_bytes += bytes;
    jm_ledger_credit(holder_at(holder)->account, 0);
}

void jm_pages_mapped(Addr start, SizeT bytes)
{
    if (jm_options.pages)
        map(start, bytes, has_started ? VG_(get_running_tid)() : VG_INVALID_THREADID);
}

static void brk_grown(Addr start, SizeT bytes, ThreadId tid)
{
    map(start, bytes, tid);
}

// The pages go with the address: where they came from is unmapped next.
static void moved(Addr from, Addr to, SizeT bytes)
{
    jm_pages_unmapped(to, bytes);
    part_at(from);
    part_at(from + bytes);
    Addr at = from;
    for (Word i = first_after(at); i < n_pieces() && piece_at(i)->start < from + bytes; i = first_after(at)) {
        Piece piece = *piece_at(i);
        at = piece.end;
        VG_(removeIndexXA)(pieces, i);
        piece.start += to - from;
        piece.end += to - from;
        VG_(insertIndexXA)(pieces, first_after(piece.start), &piece);
    }
}

// ---- stacks --------------------------------------------------------------------------------------------------

// What a thread's stack pointer points into is a stack.
static void thread_starts(ThreadId tid)
{
    has_started = True;
    Word i = first_after(VG_(get_SP)(tid));
    if (i == n_pieces() || piece_at(i)->start > VG_(get_SP)(tid))
        return;
    Piece *piece = piece_at(i);
    if (jm_options.stacks) { // counted, byte by byte, by stack_memory.c
        remove_piece(i);
        return;
    }
    UInt node;
    Kind kind;
    OwnerId owner;
    AccountId from = holder_at(piece->holder)->account;
    jm_ledger_describe(from, &node, &kind, &owner);
    if (kind != KIND_ANON)
        return;
    UInt holder = holder_of(jm_account_owned(node, KIND_STACK, owner), False);
    jm_ledger_resize(from, piece->resident, holder_at(holder)->account, piece->resident);
    holder_at(piece->holder)->virtual_bytes -= piece->end - piece->start;
    holder_at(holder)->virtual_bytes += piece->end - piece->start;
    piece->holder = holder;
    if (!main_stack_end)
        main_stack_end = piece->end;
}

// The main stack grows without a word from the core.
static void extend_main_stack(void)
{
    Piece *piece = main_stack_end ? piece_around(main_stack_end - 1) : NULL;
    const NSegment *segment = piece ? VG_(am_find_nsegment)(main_stack_end - 1) : NULL;
    if (!segment || segment->start >= piece->start)
        return;
    holder_at(piece->holder)->virtual_bytes += piece->start - segment->start;
    piece->start = segment->start;
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
    Bool is_new; // since it was last told
} process;

static ULong *part_of_process(const NSegment *segment)
{
    if (segment->kind == SkAnonV || segment->kind == SkFileV)
        return &process.valgrind;
    if (segment->isCH)
        return &process.heap;
    const HChar *path = segment->kind == SkFileC ? VG_(am_get_filename)(segment) : NULL;
    if ((path && is_device(path)) || jm_driver_is_mapped(segment->start))
        return &process.devices;
    return NULL;
}

// The same of a part of one of the kernel's mappings, while those are read. False also for what would take too long.
static Bool measure_mapped(Addr start, Addr end, PageBit bit, ULong *bytes)
{
    if (!pagemap)
        pagemap = jm_pagemap_open();
    return end - start <= MOST_MEASURED && jm_pagemap_measure(pagemap, start, end, bit, bytes);
}

// How much of a mapping of the kernel's a part of it holds, where the whole says nothing of it.
static ULong measure_part(const Vma *vma, Addr start, Addr end)
{
    if (vma->resident == 0 || vma->resident == vma->end - vma->start)
        return vma->resident ? end - start : 0;
    ULong resident;
    if (!measure_mapped(start, end, PAGE_PRESENT, &resident))
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
    process.resident += vma->resident;
    for (Addr at = vma->start; at < vma->end && vma->resident;) {
        const NSegment *segment = VG_(am_find_nsegment)(at);
        if (!segment)
            return;
        Addr end = smaller(vma->end - 1, segment->end) + 1;
        ULong *part = part_of_process(segment);
        if (part)
            *part += at == vma->start && end == vma->end ? vma->resident : measure_part(vma, at, end);
        at = end;
    }
}

// What a mapping of the kernel's holds goes to the pieces in it. Often that is one, for the whole of it. But the kernel
// makes one of neighbours that look alike; then it is asked which pages are there, unless all are.
static void share_out(const Vma *vma)
{
    count_in_process(vma);
    while (cursor < n_pieces() && piece_at(cursor)->end <= vma->start)
        cursor++;
    if (!vma->resident && !vma->swapped)
        return;
    ULong covered = 0;
    Word end = cursor;
    for (; end < n_pieces() && piece_at(end)->start < vma->end; end++)
        covered += overlap(piece_at(end), vma);
    ULong all = vma->end - vma->start;
    Bool is_one = end == cursor + 1 && covered == all;
    ULong found = 0;
    for (Word i = cursor; i < end; i++) {
        Piece *piece = piece_at(i);
        ULong part = overlap(piece, vma);
        Addr start = piece->start > vma->start ? piece->start : vma->start;
        ULong resident = is_one ? vma->resident : measure_part(vma, start, start + part);
        // Reading memory that was never written maps the page of zeros, which is nobody's.
        resident = smaller(resident, vma->resident - found);
        found += resident;
        piece->present += resident;
        if (resident)
            piece->share += (ULong)((double)resident / vma->resident * vma->shared);
        holder_at(piece->holder)->swapped_bytes += swapped_part(vma, start, start + part);
    }
}

// What has an account of its own, and lies in a mapping: the blocks of a custom allocator, and of CUDA where it is the
// program that maps the memory.
static void leave_out(Addr address, ULong bytes)
{
    for (Word i = first_after(address); bytes && i < n_pieces() && piece_at(i)->start < address + bytes; i++) {
        Piece *piece = piece_at(i);
        Vma block = {address, address + bytes, 0, 0, 0};
        ULong part = overlap(piece, &block), resident = smaller(piece->measured, part);
        piece->measured -= resident;
        process.blocks += resident;
        process.blocks_bytes += part;
    }
}

static void leave_out_custom(Addr address, ULong bytes)
{
    process.custom_bytes += bytes;
    leave_out(address, bytes);
}

// Who opens less often than this sees nothing more.
#define MIN_INTERVAL_MS 100
// A sample's cost, and this many times as much until the next: at most 1.5 % of the run.
#define COST_DIVISOR 64

static ULong next_due_ms;

static void sample(void)
{
    extend_main_stack();
    for (UInt id = 1; id < holders.n; id++)
        holder_at(id)->shared_bytes = holder_at(id)->swapped_bytes = 0;
    for (Word i = 0; i < n_pieces(); i++)
        piece_at(i)->present = piece_at(i)->share = 0;
    cursor = 0;
    pagemap = 0;
    VG_(memset)(&process, 0, sizeof process);
    Bool is_whole = jm_smaps_each(share_out);
    if (pagemap > 0)
        VG_(close)(pagemap);
    if (!is_whole)
        return;
    for (Word i = 0; i < n_pieces(); i++)
        piece_at(i)->measured = piece_at(i)->present;
    jm_device_blocks_each(leave_out);
    jm_blocks_each_custom(leave_out_custom);
    for (Word i = 0; i < n_pieces(); i++) {
        const Piece *piece = piece_at(i);
        if (piece->measured)
            holder_at(piece->holder)->shared_bytes += (ULong)((double)piece->measured / piece->present * piece->share);
    }
    // What has fallen first: the total must not rise above what it ever was.
    for (Word i = 0; i < n_pieces(); i++)
        if (piece_at(i)->measured < piece_at(i)->resident)
            set_resident(piece_at(i), piece_at(i)->measured);
    for (Word i = 0; i < n_pieces(); i++)
        set_resident(piece_at(i), piece_at(i)->measured);
    process.is_new = True;
}

void jm_pages_sample(Bool is_due)
{
    if (!jm_options.pages || !n_pieces())
        return;
    ULong begin = jm_clock_ms();
    if (!is_due && begin < next_due_ms)
        return;
    sample();
    ULong end = jm_clock_ms();
    ULong pause = (end - begin + 1) * COST_DIVISOR;
    next_due_ms = end + (pause > MIN_INTERVAL_MS ? pause : MIN_INTERVAL_MS);
}

void jm_pages_measure_scope(ThreadId tid)
{
    UInt scope = jm_scope_current(tid);
    if (!jm_options.pages || !scope)
        return;
    Int file = -1;
    for (Word i = 0; i < n_pieces(); i++) {
        Piece *piece = piece_at(i);
        // A thread's scopes that are younger than one it is still in are inside of it.
        if (piece->scope < scope || piece->tid != tid || piece->end - piece->start > MOST_MEASURED)
            continue;
        if (file < 0)
            file = jm_pagemap_open();
        ULong resident;
        if (!jm_pagemap_measure(file, piece->start, piece->end, PAGE_PRESENT, &resident))
            break;
        set_resident(piece, resident);
        UInt node;
        Kind kind;
        OwnerId owner;
        jm_ledger_describe(holder_at(piece->holder)->account, &node, &kind, &owner);
        jm_scope_grow(tid, kind, (Long)resident - (Long)piece->in_scope, resident && !piece->in_scope);
        piece->in_scope = resident;
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
    pieces = VG_(newXA)(VG_(malloc), "jm.pages.piece", VG_(free), sizeof(Piece));
    jm_ledger_keep_allocated_peak();
    VG_(track_new_mem_brk)(brk_grown);
    VG_(track_die_mem_brk)(jm_pages_unmapped);
    VG_(track_copy_mem_remap)(moved);
    VG_(track_pre_thread_first_insn)(thread_starts);
}

void jm_pages_write(void)
{
    for (UInt id = 1; id < holders.n; id++) {
        Holder *h = holder_at(id);
        const ULong now[3] = {h->virtual_bytes, h->shared_bytes, h->swapped_bytes};
        if (VG_(memcmp)(h->told, now, sizeof now) == 0)
            continue;
        VG_(memcpy)(h->told, now, sizeof now);
        jm_trace_pages(h->account, h->virtual_bytes, h->shared_bytes, h->swapped_bytes);
    }
}

void jm_pages_write_process(ULong time)
{
    if (!process.is_new)
        return;
    process.is_new = False;
    jm_trace_system(time, "resident", process.resident);
    jm_trace_system(time, "resident-heap", process.heap);
    jm_trace_system(time, "resident-valgrind", process.valgrind);
    jm_trace_system(time, "resident-devices", process.devices);
    jm_trace_system(time, "resident-blocks", process.blocks);
    jm_trace_system(time, "blocks-in-mappings", process.blocks_bytes);
    jm_trace_system(time, "custom-blocks", process.custom_bytes);
}

void jm_pages_after_fork_in_child(void)
{
    process.is_new = False;
    for (UInt id = 1; id < holders.n; id++)
        VG_(memset)(holder_at(id)->told, 0, sizeof holder_at(id)->told);
}

void jm_pages_stats(void)
{
    jm_stats_table("accounts of pages", &holders);
    jm_stats_index(&holder_index);
    jm_stats_array("jm.pages.piece", "mappings", pieces, sizeof(Piece));
}
