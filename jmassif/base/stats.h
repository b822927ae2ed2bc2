// SPDX-License-Identifier: GPL-2.0-or-later
//
// A host's own tables, for --stats=yes. --profile-heap=yes has the recorder's memory by use.

#ifndef JM_STATS_H
#define JM_STATS_H

#include "host/types.h"

// Print one row: `n` objects in `bytes`, as requested from the allocator. `what` is their plural.
void jm_stats_row(const HChar *centre, const HChar *what, ULong n, SizeT bytes);

#endif
