// SPDX-License-Identifier: GPL-2.0-or-later
//
// A library with a malloc of its own, of the simplest sort, for --soname-synonyms.

#include <stddef.h>
#include <string.h>

#define REGION_BYTES (8 << 20)

static _Alignas(16) char region[REGION_BYTES];
static size_t used;

void *malloc(size_t bytes)
{
    size_t *p = (size_t *)(region + used);
    size_t room = (bytes + 31) / 16 * 16;
    if (bytes > REGION_BYTES || used + room > REGION_BYTES)
        return NULL;
    used += room;
    p[0] = bytes;
    return p + 2;
}

void free(void *p)
{
    (void)p;
}

void *calloc(size_t n, size_t each)
{
    void *p = malloc(n * each);
    return p ? memset(p, 0, n * each) : p;
}

void *realloc(void *p, size_t bytes)
{
    void *to = malloc(bytes);
    if (p && to) {
        size_t old = ((size_t *)p)[-2];
        memcpy(to, p, old < bytes ? old : bytes);
    }
    return to;
}
