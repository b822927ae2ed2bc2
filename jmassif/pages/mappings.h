// SPDX-License-Identifier: GPL-2.0-or-later
//
// The program's mappings, besides its heap: a piece of address space each, with the account that the stack of its mmap
// gives it. A mapping's account holds what is resident of it, which is for pages.c to find out.

#ifndef JM_PAGES_MAPPINGS_H
#define JM_PAGES_MAPPINGS_H

#include "base/compat.h"
#include "ledger/ledger.h"

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
    // While a sample is being taken: what is there, what of that in the one of the kernel's mappings that is looked at,
    // what counts here, and the process's share of it.
    ULong present;
    ULong in_vma;
    ULong measured;
    ULong share;
} Piece;

// Follows what the core announces beside mappings: the heap that grows by brk, what mremap moves.
void jm_mappings_init(void);

// Called by main.c's hooks, when the core's own table of segments is up to date.
void jm_mappings_mapped(Addr start, SizeT bytes);
void jm_mappings_unmapped(Addr start, SizeT bytes);
void jm_mappings_thread_begins(ThreadId tid);

// The main stack grows without a word from the core.
void jm_mappings_extend_main_stack(void);
Addr jm_mappings_main_stack_end(void); // 0: not known

// Pieces in order of address; they do not overlap.
Word jm_pieces_n(void);
Piece *jm_piece_at(Word i);
Word jm_piece_first_after(Addr address); // the first that ends after it; the number of pieces: none
void jm_piece_set_resident(Piece *piece, ULong bytes);

// Holders have the numbers from 1 to jm_holders_n() - 1.
UInt jm_holders_n(void);
Holder *jm_holder_at(UInt id);

// Whether what is behind a file of that name is the driver's to tell.
Bool jm_mappings_is_device(const HChar *path);

void jm_mappings_stats(void); // tells what it keeps (stats.h)

#endif
