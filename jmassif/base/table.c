// SPDX-License-Identifier: GPL-2.0-or-later
//
// Growth of the tables (frames, nodes, accounts) and of their hash indexes; see table.h for the reason of the chunks.

#include "base/table.h"
#include "base/libc.h"
#include "host/host.h"

UInt jm_table_add(Table *t)
{
    UInt i = t->n++;
    UInt chunk = i >> JM_CHUNK_BITS;
    if (chunk >= t->n_chunks) {
        if (!(chunk & (chunk - 1))) // a power of two, or the first: double the array
            t->chunks = host_realloc(t->name, t->chunks, (chunk ? 2 * chunk : 1) * sizeof *t->chunks);
        t->chunks[chunk] = host_alloc_zeroed(t->name, JM_CHUNK, t->record_bytes);
        t->n_chunks = chunk + 1;
    }
    return i;
}

void jm_table_drop_last(Table *t)
{
    memset(jm_table_at(t, t->n - 1), 0, t->record_bytes);
    t->n--;
}

void jm_index_grow(Index *x)
{
    const Index old = *x;
    const UInt old_capacity = old.slots ? old.mask + 1 : 0, capacity = old_capacity ? old_capacity * 2 : 1024;
    x->slots = host_alloc_zeroed(x->name, capacity, sizeof *x->slots);
    x->mask = capacity - 1;
    x->limit = capacity / 4 * 3; // beyond it linear probing slows down
    for (UInt i = 0; i < old_capacity; i++)
        if (old.slots[i].entry)
            JM_INDEX_FIND(x, old.slots[i].hash, other, False)->entry = old.slots[i].entry;
    host_free(old.slots);
}
