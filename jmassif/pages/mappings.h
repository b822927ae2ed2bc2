// SPDX-License-Identifier: GPL-2.0-or-later
//
// The program's mappings except its heap. Each has the account of the stack that called mmap. The account holds the
// mapping's resident bytes, which pages.c measures. Sizes are in bytes.

#pragma once

#include "ledger/ledger.h"

// The mappings of one account.
typedef struct {
    AccountId account;
    AccountId copies; // of the pages of a file of data that a private mapping has copied; 0: none yet
    Bool is_object;   // of an executable's or library's file
    ULong virtual_bytes;
    ULong shared_bytes; // Pss
    ULong swapped_bytes;
    ULong written[3]; // the three sizes in the trace
} Holder;

// A mapping, or a part of it that later mappings have left.
typedef struct {
    Addr start;
    Addr end;
    UInt holder;
    ThreadId tid;
    UInt scope;     // scope (API call) that mapped it; 0: none
    ULong resident; // as in the ledger
    ULong copied;   // part of it that is no more the file's
    ULong in_scope; // part of resident that scopes have counted
    // Only during a sample: resident bytes, those in the kernel mapping being read, those that count here, and the
    // process's proportional share of them.
    ULong present;
    ULong in_vma;
    ULong measured;
    ULong copied_now;
    ULong share;
} Piece;

// Also follows brk and mremap, which the core announces separately.
void jm_mappings_init(void);

// Call once host_mapping_at knows of the change.
// The program's break has grown by the thread's call.
void jm_mappings_brk_grown(Addr start, SizeT bytes, ThreadId tid);

// Pages were moved to another address (mremap). The old range is unmapped next.
void jm_mappings_moved(Addr from, Addr to, SizeT bytes);

void jm_mappings_mapped(Addr start, SizeT bytes);
void jm_mappings_unmapped(Addr start, SizeT bytes);
void jm_mappings_thread_begins(ThreadId tid);

// Updates the main stack, since the core does not announce its growth.
void jm_mappings_extend_main_stack(void);
Addr jm_mappings_main_stack_end(void); // 0 if unknown

AccountId jm_mappings_account(Addr address); // of the mapping around it; 0: none is recorded

// Pieces in order of address; they do not overlap.
Word jm_pieces_n(void);
Piece *jm_piece_at(Word i);
Word jm_piece_first_after(Addr address); // index of the first that ends after it; jm_pieces_n() if none does
void jm_piece_set_resident(Piece *piece, ULong bytes, ULong copied);

// Ids of holders are 1 to jm_holders_n() - 1.
UInt jm_holders_n(void);
Holder *jm_holder_at(UInt id);

// True if memory behind a file of that name is the driver's: driver/ records it.
Bool jm_mappings_is_device(const HChar *path);
