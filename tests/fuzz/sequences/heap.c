/* SPDX-License-Identifier: GPL-2.0-or-later */
/* malloc and its kin in all ways, and blocks of an allocator of the program's own. Blocks are filled to the last byte
 * that malloc_usable_size promises, and compared before they end or after they have moved. */
#define _GNU_SOURCE
#include <malloc.h>
#include <valgrind/valgrind.h>

#include "sequences.h"

static size_t some_size(struct walker *w)
{
    switch (chance(w, 8)) {
    case 0:
        return chance(w, 3);
    case 1:
        return (size_t)16 << chance(w, 12);
    case 2:
        return ((size_t)16 << chance(w, 12)) - 1 - chance(w, 16);
    case 3:
        return 1 + chance(w, 300000);
    default:
        return 1 + chance(w, 700);
    }
}

static void fill(struct block *block)
{
    block->usable = block->is_custom ? block->bytes : malloc_usable_size(block->at);
    MUST(block->usable >= block->bytes);
    memset(block->at, block->fill, block->usable);
}

static bool holds(const unsigned char *at, unsigned char value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (at[i] != value)
            return false;
    return true;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Each is a place of its own in the profile. */

static NOINLINE void *by_malloc(struct walker *w, size_t bytes)
{
    (void)w;
    return malloc(bytes);
}

/* Of a number of parts: so more than was asked for. */
static NOINLINE void *by_calloc(struct walker *w, size_t *bytes)
{
    size_t each = 1 + chance(w, 9);
    *bytes = (*bytes / each + 1) * each;
    void *p = calloc(*bytes / each, each);
    MUST(p && holds(p, 0, *bytes));
    return p;
}

static NOINLINE void *by_memalign(struct walker *w, size_t bytes)
{
    void *p = NULL;
    size_t alignment = (size_t)8 << chance(w, 13);
    switch (chance(w, 4)) {
    case 0:
        p = memalign(alignment, bytes);
        break;
    case 1:
        MUST(posix_memalign(&p, alignment, bytes) == 0);
        break;
    case 2:
        p = aligned_alloc(alignment, bytes);
        break;
    default:
        alignment = (size_t)sysconf(_SC_PAGESIZE);
        p = valloc(bytes);
    }
    MUST((uintptr_t)p % alignment == 0);
    return p;
}

static NOINLINE void *by_realloc(struct walker *w, void *p, size_t bytes)
{
    return chance(w, 3) ? realloc(p, bytes) : reallocarray(p, 1, bytes);
}

static void made(struct walker *w, struct block *block, void *at, size_t bytes)
{
    MUST(at);
    block->at = at;
    block->bytes = bytes;
    block->fill = (unsigned char)(1 + chance(w, 255));
    fill(block);
    w->heap_bytes += (int64_t)bytes;
    w->heap_blocks++;
}

static void make(struct walker *w, struct block *block)
{
    size_t bytes = some_size(w);
    block->is_custom = false;
    void *at;
    switch (chance(w, 5)) {
    case 0:
        at = by_calloc(w, &bytes);
        break;
    case 1:
        at = by_memalign(w, bytes);
        break;
    case 2:
        at = by_realloc(w, NULL, ++bytes);
        break;
    default:
        at = by_malloc(w, bytes);
    }
    made(w, block, at, bytes);
}

static void resize(struct walker *w, struct block *block)
{
    size_t bytes = 1 + some_size(w), kept = smaller(bytes, block->usable);
    unsigned char *at = by_realloc(w, block->at, bytes);
    MUST(at && holds(at, block->fill, kept));
    w->heap_bytes += (int64_t)bytes - (int64_t)block->bytes;
    block->at = at;
    block->bytes = bytes;
    fill(block);
}

static void end(struct walker *w, struct block *block)
{
    MUST(holds(block->at, block->fill, block->usable));
    found(w, block->bytes << 8 | block->fill);
    w->heap_bytes -= (int64_t)block->bytes;
    w->heap_blocks--;
    if (block->is_custom)
        VALGRIND_FREELIKE_BLOCK(block->at, 0);
    else
        free(block->at);
    block->at = NULL;
}

/* An allocator of our own: each slot of a walker has its place in it. */
static unsigned char arena[N_WALKERS][N_BLOCKS][512];

static NOINLINE void make_custom(struct walker *w, struct block *block, unsigned slot)
{
    unsigned char *at = arena[w->which][slot];
    block->is_custom = true;
    size_t bytes = 1 + chance(w, 512);
    if (chance(w, 8) == 0)
        VALGRIND_MALLOCLIKE_BLOCK(at, 1 + chance(w, 512), 0, 0); /* forgets to say that it has ended */
    VALGRIND_MALLOCLIKE_BLOCK(at, bytes, 0, 0);
    made(w, block, at, bytes);
}

static NOINLINE void resize_custom(struct walker *w, struct block *block)
{
    size_t bytes = 1 + chance(w, 512);
    VALGRIND_RESIZEINPLACE_BLOCK(block->at, block->bytes, bytes, 0);
    w->heap_bytes += (int64_t)bytes - (int64_t)block->bytes;
    block->bytes = bytes;
    fill(block);
}

/* Calls that fail, or do nothing. */
static NOINLINE void in_vain(struct walker *w)
{
    static volatile size_t too_much = (size_t)-1 / 2;
    switch (chance(w, 5)) {
    case 0:
        free(NULL);
        break;
    case 1:
        MUST(malloc(too_much) == NULL);
        break;
    case 2:
        MUST(calloc(too_much, 3) == NULL);
        break;
    case 3:
        MUST(reallocarray(NULL, too_much, 5) == NULL);
        break;
    default: {
        void *p = NULL;
        MUST(posix_memalign(&p, 24, 10) == EINVAL);
    }
    }
}

void heap_step(struct walker *w)
{
    unsigned slot = (unsigned)chance(w, N_BLOCKS);
    struct block *block = &w->blocks[slot];
    if (chance(w, 40) == 0)
        in_vain(w);
    else if (!block->at && chance(w, 6) == 0)
        make_custom(w, block, slot);
    else if (!block->at)
        make(w, block);
    else if (chance(w, 2))
        end(w, block);
    else if (block->is_custom)
        resize_custom(w, block);
    else
        resize(w, block);
}
