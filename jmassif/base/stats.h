// SPDX-License-Identifier: GPL-2.0-or-later
//
// The recorder's own memory, for --stats=yes. Each module with large tables prints them; the names are the cost centres
// under which --profile-heap=yes lists the same memory in Valgrind's allocator.

#ifndef JM_STATS_H
#define JM_STATS_H

#include "base/array.h"
#include "base/table.h"

// Print one row: `n` objects in `bytes`, as requested from the allocator. `what` is their plural.
void jm_stats_row(const HChar *centre, const HChar *what, ULong n, SizeT bytes);

void jm_stats_table(const HChar *what, const Table *t);
void jm_stats_index(const Index *x); // entries are counted with their table
void jm_stats_array(const HChar *centre, const HChar *what, const Array *a, SizeT each); // `a` may be NULL

// Call each function of a NULL-terminated list, each of which prints its rows, and print the sum.
typedef void (*TellStats)(void);
void jm_stats_print(const TellStats *tellers);

#endif
