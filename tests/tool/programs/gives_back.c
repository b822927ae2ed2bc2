// SPDX-License-Identifier: GPL-2.0-or-later
//
// 64 MiB of small blocks, freed again. Prints the resident memory, KiB, with them and without.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N (1 << 20)

static char *blocks[N];

static long resident(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%*d %ld", &pages) != 1)
        exit(1);
    fclose(f);
    return pages * 4;
}

int main(void)
{
    for (int i = 0; i < N; i++)
        blocks[i] = memset(malloc(64), 1, 64);
    long with = resident();
    for (int i = 0; i < N; i++)
        free(blocks[i]);
    printf("%ld %ld\n", with, resident());
    return 0;
}
