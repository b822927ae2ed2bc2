// SPDX-License-Identifier: GPL-2.0-or-later
//
// The recorder's own memory, for --stats=yes. Each module that keeps much tells what it keeps; the names are the cost
// centres by which --profile-heap=yes lists the same memory as Valgrind's allocator knows it.

#ifndef JM_STATS_H
#define JM_STATS_H

#include "base/table.h"

// One row: `n` things of some kind in `bytes`, as they were asked for from the allocator. `what` is their plural.
void jm_stats_row(const HChar *centre, const HChar *what, ULong n, SizeT bytes);

void jm_stats_table(const HChar *what, const Table *t);
void jm_stats_index(const Index *x); // its entries are counted with their table
void jm_stats_array(const HChar *centre, const HChar *what, const XArray *a, SizeT each); // NULL: none yet

// Lets each of `tellers`, which end with NULL, tell its part, and prints the sum.
typedef void (*TellStats)(void);
void jm_stats_print(const TellStats *tellers);

#endif
