// SPDX-License-Identifier: GPL-2.0-or-later
//
// The recorder's table of blocks without the recorder: reads calls from standard input, a line each, and prints their
// results. What a host gives to it stands below, made of the C library.

#include <stdio.h>
#include <stdlib.h>

#include "heap/blocks.h"
#include "heap/slab.h"
#include "host/host.h"

void *host_alloc(const HChar *name, SizeT bytes)
{
    return malloc(bytes);
}
void *host_alloc_zeroed(const HChar *name, SizeT n, SizeT bytes)
{
    return calloc(n, bytes);
}
void *host_realloc(const HChar *name, void *p, SizeT bytes)
{
    return realloc(p, bytes);
}
void host_free(void *p)
{
    free(p);
}
void host_fail(const HChar *condition, const HChar *file, UInt line, const HChar *function)
{
    fprintf(stderr, "%s:%u: %s: %s\n", file, line, function, condition);
    exit(1);
}
Bool jm_slab_find(Addr address, SlabBlock *block)
{
    return False;
}

static void print_if(Bool is_there, Block b)
{
    if (is_there)
        printf("%llu %u %d %d\n", (unsigned long long)b.bytes, b.account, b.has_record, b.is_custom);
    else
        puts("none");
}

static void print_each(Addr address, ULong bytes)
{
    printf("%lu %llu ", address, (unsigned long long)bytes);
}

int main(void)
{
    char call;
    unsigned long address, bytes, account, has_record, is_custom;
    while (scanf(" %c %lu %lu %lu %lu %lu", &call, &address, &is_custom, &bytes, &account, &has_record) == 6) {
        Block found, now = {.bytes = bytes, .account = account, .has_record = has_record, .is_custom = is_custom};
        if (call == 'a')
            print_if(jm_blocks_add(address, now, &found), found);
        else if (call == 't')
            print_if(jm_blocks_take(address, is_custom, &found), found);
        else if (call == 'f')
            print_if(jm_blocks_find(address, &found), found);
        else
            jm_blocks_each(is_custom, bytes, print_each), puts("");
    }
    return 0;
}
