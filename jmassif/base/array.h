// SPDX-License-Identifier: GPL-2.0-or-later
//
// A growing array of records. A record moves when the array grows or another is inserted or removed before it.

#pragma once

#include "host/types.h"

typedef struct {
    const HChar *name; // of the recorder's memory
    UChar *records;
    SizeT record_bytes;
    Word n, capacity;
} Array;

#define JM_ARRAY(name, type)                                                                                           \
    {                                                                                                                  \
        (name), NULL, sizeof(type), 0, 0                                                                               \
    }

Array *jm_array_new(const HChar *name, SizeT record_bytes);
void jm_array_delete(Array *a);

static inline Word jm_array_n(const Array *a)
{
    return a->n;
}

static inline void *jm_array_at(const Array *a, Word i)
{
    return a->records + i * a->record_bytes;
}

// Append a copy of the record and return its index.
Word jm_array_add(Array *a, const void *record);

// Find the record that begins with the same bytes as `record`; NULL if there is none. For a few records: the search is
// linear.
void *jm_array_find(const Array *a, const void *record, SizeT key_bytes);

// The same, but append a copy of the record if there is none.
void *jm_array_find_or_add(Array *a, const void *record, SizeT key_bytes);

// Index of the first record with a larger address in its field at `offset`, by which the records are sorted; the end if
// there is none.
Word jm_array_behind(const Array *a, SizeT offset, Addr address);

// Insert a copy of the record before the one at `i`, which may be the end.
void jm_array_insert(Array *a, Word i, const void *record);

void jm_array_remove(Array *a, Word i);
void jm_array_clear(Array *a);
