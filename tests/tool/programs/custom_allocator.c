// SPDX-License-Identifier: GPL-2.0-or-later
//
// A custom allocator that tells Valgrind of its blocks: what it announces counts, not the region it carves them from.

#include <stdio.h>
#include <sys/mman.h>
#include <valgrind/valgrind.h>

#define REGION_BYTES (1 << 20)
#define ROOM         4096

static char *region;
static size_t used;

static char *take(size_t bytes)
{
    char *p = region + used;
    used += ROOM;
    VALGRIND_MALLOCLIKE_BLOCK(p, bytes, 0, 0);
    return p;
}

static void resize(char *p, size_t from, size_t to)
{
    VALGRIND_RESIZEINPLACE_BLOCK(p, from, to, 0);
}
static void give(char *p)
{
    VALGRIND_FREELIKE_BLOCK(p, 0);
}

int main(void)
{
    region = mmap(NULL, REGION_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *blocks[100];
    for (int i = 0; i < 100; i++)
        blocks[i] = take((size_t)(10 + i));
    for (int i = 0; i < 100; i += 2)
        resize(blocks[i], (size_t)(10 + i), 2000);
    for (int i = 0; i < 100; i += 3)
        give(blocks[i]);
    for (int i = 2; i < 100; i += 6)
        resize(blocks[i], 2000, 1);
    for (int i = 0; i < 100; i++)
        if (i % 3)
            give(blocks[i]);
    puts("done");
    return 0;
}
