// SPDX-License-Identifier: GPL-2.0-or-later
//
// Growth by doubling; see array.h.

#include "base/array.h"
#include "base/libc.h"
#include "host/host.h"

Array *jm_array_new(const HChar *name, SizeT record_bytes)
{
    Array *a = host_alloc_zeroed(name, 1, sizeof *a);
    a->name = name;
    a->record_bytes = record_bytes;
    return a;
}

void jm_array_delete(Array *a)
{
    host_free(a->records);
    host_free(a);
}

void jm_array_insert(Array *a, Word i, const void *record)
{
    if (a->n == a->capacity) {
        a->capacity = a->capacity ? 2 * a->capacity : 2;
        a->records = host_realloc(a->name, a->records, a->capacity * a->record_bytes);
    }
    UChar *at = jm_array_at(a, i);
    memmove(at + a->record_bytes, at, (a->n - i) * a->record_bytes);
    memcpy(at, record, a->record_bytes);
    a->n++;
}

Word jm_array_add(Array *a, const void *record)
{
    jm_array_insert(a, a->n, record);
    return a->n - 1;
}

void *jm_array_find(const Array *a, const void *record, SizeT key_bytes)
{
    for (Word i = 0; i < a->n; i++)
        if (memcmp(jm_array_at(a, i), record, key_bytes) == 0)
            return jm_array_at(a, i);
    return NULL;
}

void *jm_array_find_or_add(Array *a, const void *record, SizeT key_bytes)
{
    void *found = jm_array_find(a, record, key_bytes);
    return found ? found : jm_array_at(a, jm_array_add(a, record));
}

Word jm_array_behind(const Array *a, SizeT offset, Addr address)
{
    Word low = 0, high = a->n;
    while (low < high) {
        Word middle = low + (high - low) / 2;
        if (*(const Addr *)((const UChar *)jm_array_at(a, middle) + offset) <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void jm_array_remove(Array *a, Word i)
{
    a->n--;
    UChar *at = jm_array_at(a, i);
    memmove(at, at + a->record_bytes, (a->n - i) * a->record_bytes);
}

void jm_array_clear(Array *a)
{
    a->n = 0;
}
