// SPDX-License-Identifier: GPL-2.0-or-later
//
// Keeps mappings and their owners as pieces in order of address. A later mmap, munmap or mremap cuts pieces; each keeps
// the account and the scope of the call that made it. See mappings.h.
//
// The program's heap lies in mappings of the core (its malloc replacement made them), and the core announces neither
// these nor its own: every announced mapping is outside the heap.

#include "pages/mappings.h"
#include "base/array.h"
#include "base/options.h"
#include "base/table.h"
#include "base/text.h"
#include "calls/scope.h"
#include "driver/driver.h"
#include "host/host.h"
#include "ledger/account.h"
#include "stack/stack.h"

static Table holders = JM_TABLE("jm.pages.holder", Holder);
static Array *pieces;       // Pieces in order of address
static Addr main_stack_end; // 0: unknown so far
static Bool has_started;    // the program runs: later mappings are its own

Word jm_pieces_n(void)
{
    return jm_array_n(pieces);
}

Piece *jm_piece_at(Word i)
{
    return jm_array_at(pieces, i);
}

UInt jm_holders_n(void)
{
    return holders.n;
}

Holder *jm_holder_at(UInt id)
{
    return jm_table_at(&holders, id);
}

// ---- owners --------------------------------------------------------------------------------------------------

static Index holder_index = JM_INDEX("jm.pages.holder");

static UInt holder_of(AccountId account, Bool is_object)
{
    IndexSlot *slot = JM_INDEX_FIND(&holder_index, jm_hash(account), id, jm_holder_at(id)->account == account);
    if (!slot->entry) {
        UInt id = jm_index_put(&holder_index, slot, jm_table_add(&holders));
        jm_holder_at(id)->account = account;
        jm_holder_at(id)->is_object = is_object;
    }
    return slot->entry;
}

// Shared memory: it has a name in a file system, but is on no disk.
static Bool is_shared_memory(const HChar *path)
{
    return jm_text_fits_any("/dev/shm/*|/dev/hugepages/*|/memfd:*|/SYSV*", path);
}

// A buffer shared through a descriptor has a name without a directory.
Bool jm_mappings_is_device(const HChar *path)
{
    return (jm_text_fits("/dev/*", 0, path) && !is_shared_memory(path) && !jm_text_equal(path, "/dev/zero")) ||
           jm_text_fits_any("/dmabuf*|anon_inode:*|/anon_inode:*", path);
}

// Returns the holder of the mapping; 0 if it is not counted.
static UInt holder_of_mapping(const Mapping *mapping, ThreadId tid)
{
    const HChar *path = mapping->path;
    if (mapping->is_heap || (path && !mapping->is_programs) || (path && jm_mappings_is_device(path)) ||
        (tid != HOST_NO_THREAD && jm_driver_is_mapping(tid)))
        return 0;
    // The tool's own file is mapped for the program too: the page with the core's trampolines.
    if (path && jm_text_fits("jmassif-*-linux", 0, jm_text_file_name(path)))
        return 0;
    Bool is_ignored = False;
    NodeId node = tid == HOST_NO_THREAD ? 0 : jm_scope_capture(tid, &is_ignored);
    if (is_ignored)
        return 0;
    Bool is_object = !has_started || (path && jm_text_fits_any("*.so|*.so.*", jm_text_file_name(path)));
    const HChar *loader = host_unseen_loader();
    if (loader) // a file that is no object, such as a locale, was seen when some thread happened to look
        node = jm_stack_push_mapped(path && !is_object ? 0 : node, loader, True);
    if (!path) {
        if (!node)
            return holder_of(jm_account_owned(0, KIND_ANON, JM_OWNER_APP), False);
        return holder_of(jm_account(node, KIND_ANON), False);
    }
    node = jm_stack_push_mapped(node, path, is_object);
    return holder_of(jm_account(node, is_shared_memory(path) ? KIND_ANON : KIND_FILE), is_object);
}

// ---- pieces --------------------------------------------------------------------------------------------------

Word jm_piece_first_after(Addr address)
{
    return jm_array_behind(pieces, __builtin_offsetof(Piece, end), address);
}

static Piece *piece_around(Addr address)
{
    Word i = jm_piece_first_after(address);
    return i < jm_pieces_n() && jm_piece_at(i)->start <= address ? jm_piece_at(i) : NULL;
}

AccountId jm_mappings_account(Addr address)
{
    const Piece *piece = pieces ? piece_around(address) : NULL;
    return piece ? jm_holder_at(piece->holder)->account : 0;
}

void jm_piece_set_resident(Piece *piece, ULong bytes, ULong copied)
{
    Holder *h = jm_holder_at(piece->holder);
    const AccountKey key = jm_ledger_key(h->account);
    if (key.kind != KIND_FILE || h->is_object) // libraries copy their data in any case
        copied = 0;
    copied = copied < bytes ? copied : bytes;
    if (copied && !h->copies)
        h->copies = jm_account_owned(key.node, KIND_ANON, key.owner);
    const Long more = (Long)bytes - (Long)piece->resident, more_copied = (Long)copied - (Long)piece->copied;
    if (more_copied < 0) // decreases first, or their sum makes a peak that never was
        jm_ledger_adjust(h->copies, more_copied);
    if (more != more_copied)
        jm_ledger_adjust(h->account, more - more_copied);
    if (more_copied > 0)
        jm_ledger_adjust(h->copies, more_copied);
    piece->resident = bytes;
    piece->copied = copied;
}

// Splits the piece around the address, if there is one. Its resident bytes are guessed until the next sample.
static void part_at(Addr address)
{
    Word i = jm_piece_first_after(address);
    if (i == jm_pieces_n() || jm_piece_at(i)->start >= address)
        return;
    Piece *lower = jm_piece_at(i);
    Piece upper = *lower;
    lower->end = upper.start = address;
    lower->resident = jm_smaller(upper.resident, lower->end - lower->start);
    upper.resident -= lower->resident;
    lower->copied = jm_smaller(upper.copied, lower->resident);
    upper.copied -= lower->copied;
    lower->in_scope = jm_smaller(upper.in_scope, lower->resident);
    upper.in_scope -= lower->in_scope;
    jm_ledger_credit(jm_holder_at(upper.holder)->account, 0);
    jm_array_insert(pieces, i + 1, &upper);
}

void jm_mappings_unmapped(Addr start, SizeT bytes)
{
    if (!jm_options.pages)
        return;
    part_at(start);
    part_at(start + bytes);
    for (Word i = jm_piece_first_after(start); i < jm_pieces_n() && jm_piece_at(i)->start < start + bytes;) {
        Piece *piece = jm_piece_at(i);
        jm_piece_set_resident(piece, 0, 0);
        jm_holder_at(piece->holder)->virtual_bytes -= piece->end - piece->start;
        jm_ledger_debit(jm_holder_at(piece->holder)->account, 0);
        jm_array_remove(pieces, i);
    }
}

// Returns the holder of a library's zero-initialised data: mapped over a part of the file's mapping or, at the start,
// behind it. 0 if the mapping is something else.
static UInt library_under(const Mapping *mapping, Addr start)
{
    if (!mapping->is_programs || mapping->as != MAPPED_ANONYMOUS)
        return 0;
    const Piece *under = piece_around(has_started ? start : start - 1);
    return under && jm_holder_at(under->holder)->is_object ? under->holder : 0;
}

static void add_mapping(Addr start, SizeT bytes, ThreadId tid)
{
    Mapping mapping;
    if (!bytes || (!host_mapping_at(start, &mapping) && mapping.end <= start))
        return;
    UInt holder = library_under(&mapping, start);
    jm_mappings_unmapped(start, bytes);
    if (!holder)
        holder = holder_of_mapping(&mapping, tid);
    if (!holder)
        return;
    Word i = jm_piece_first_after(start);
    // Extend the piece: a heap of the program's own grows by brk in small steps.
    if (i > 0 && jm_piece_at(i - 1)->end == start && jm_piece_at(i - 1)->holder == holder &&
        jm_piece_at(i - 1)->tid == tid && !jm_piece_at(i - 1)->scope) {
        jm_piece_at(i - 1)->end += bytes;
        jm_holder_at(holder)->virtual_bytes += bytes;
        return;
    }
    Piece piece = {.start = start,
                   .end = start + bytes,
                   .holder = holder,
                   .tid = tid,
                   .scope = tid == HOST_NO_THREAD ? 0 : jm_scope_current(tid)};
    jm_array_insert(pieces, i, &piece);
    jm_holder_at(holder)->virtual_bytes += bytes;
    jm_ledger_credit(jm_holder_at(holder)->account, 0);
}

void jm_mappings_mapped(Addr start, SizeT bytes)
{
    if (jm_options.pages)
        add_mapping(start, bytes, has_started ? host_thread() : HOST_NO_THREAD);
}

void jm_mappings_brk_grown(Addr start, SizeT bytes, ThreadId tid)
{
    if (jm_options.pages)
        add_mapping(start, bytes, tid);
}

void jm_mappings_moved(Addr from, Addr to, SizeT bytes)
{
    if (!jm_options.pages)
        return;
    jm_mappings_unmapped(to, bytes);
    part_at(from);
    part_at(from + bytes);
    Addr at = from;
    for (Word i = jm_piece_first_after(at); i < jm_pieces_n() && jm_piece_at(i)->start < from + bytes;
         i = jm_piece_first_after(at)) {
        Piece piece = *jm_piece_at(i);
        at = piece.end;
        jm_array_remove(pieces, i);
        piece.start += to - from;
        piece.end += to - from;
        jm_array_insert(pieces, jm_piece_first_after(piece.start), &piece);
    }
}

// ---- stacks --------------------------------------------------------------------------------------------------

// The mapping under a thread's stack pointer is its stack.
void jm_mappings_thread_begins(ThreadId tid)
{
    if (!pieces)
        return;
    has_started = True;
    Word i = jm_piece_first_after(host_sp(tid));
    if (i == jm_pieces_n() || jm_piece_at(i)->start > host_sp(tid))
        return;
    Piece *piece = jm_piece_at(i);
    AccountId from = jm_holder_at(piece->holder)->account;
    AccountKey key = jm_ledger_key(from);
    if (key.kind != KIND_ANON)
        return;
    UInt holder = holder_of(jm_account_owned(key.node, KIND_STACK, key.owner), False);
    jm_ledger_resize(from, piece->resident, jm_holder_at(holder)->account, piece->resident);
    jm_holder_at(piece->holder)->virtual_bytes -= piece->end - piece->start;
    jm_holder_at(holder)->virtual_bytes += piece->end - piece->start;
    piece->holder = holder;
    if (!main_stack_end)
        main_stack_end = piece->end;
}

void jm_mappings_extend_main_stack(void)
{
    Piece *piece = main_stack_end ? piece_around(main_stack_end - 1) : NULL;
    Mapping stack;
    if (!piece || !host_mapping_at(main_stack_end - 1, &stack) || stack.start >= piece->start)
        return;
    jm_holder_at(piece->holder)->virtual_bytes += piece->start - stack.start;
    piece->start = stack.start;
}

Addr jm_mappings_main_stack_end(void)
{
    return main_stack_end;
}

void jm_mappings_init(void)
{
    pieces = jm_array_new("jm.pages.piece", sizeof(Piece));
}
