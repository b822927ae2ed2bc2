// SPDX-License-Identifier: GPL-2.0-or-later
//
// The recorder's table of blocks without the recorder: reads calls from standard input, a line each, and prints their
// results.

#include <stdio.h>

#include "heap/blocks.h"
#include "heap/slab.h"
#include "host_of_libc.h"

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
