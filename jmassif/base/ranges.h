// SPDX-License-Identifier: GPL-2.0-or-later
//
// A set of address ranges, which may overlap. A range is found, added and removed in a few steps, and no other one is
// moved or read: between two calls of the program the processor forgets all that is large. The ranges belong to the
// caller and begin with the fields of Range; none is empty.

#pragma once

#include "host/types.h"

typedef struct Range {
    struct Range *next, **link; // of its chain
    Addr start, end;
} Range;

#define JM_RANGES_BITS 11

typedef struct {
    UInt n[64];    // by size class: the highest bit of the number of bytes
    ULong classes; // those that are not empty
    Range *chains[1 << JM_RANGES_BITS];
} Ranges;

void jm_ranges_add(Ranges *set, Range *range);
void jm_ranges_remove(Ranges *set, Range *range);

// A range that overlaps these addresses; NULL if there is none.
void *jm_ranges_find(const Ranges *set, Addr start, Addr end);

// The range after another one, in no order; NULL begins, and ends.
void *jm_ranges_next(const Ranges *set, const Range *after);
