// SPDX-License-Identifier: GPL-2.0-or-later
//
// A long walk of random allocations, resizes and frees with many peaks, each a little higher than the one before.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N 600

static uint64_t state = 42;

static size_t random_below(size_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(state >> 33) % n;
}

int main(void)
{
    char *blocks[N] = {0};
    size_t sizes[N] = {0}, live = 0, largest = 0;
    for (int step = 0; step < 30000; step++) {
        size_t i = random_below(N), bytes = random_below(random_below(10) ? 500 : 20000);
        live -= sizes[i];
        switch (random_below(blocks[i] ? 3 : 2)) {
        case 0:
#ifdef NEVER_SHRINKS
            bytes = bytes < sizes[i] ? sizes[i] : bytes;
#endif
            blocks[i] = realloc(blocks[i], bytes + 1);
            sizes[i] = bytes + 1;
            break;
        case 1:
            free(blocks[i]);
            blocks[i] = malloc(bytes);
            sizes[i] = bytes;
            break;
        default:
            free(blocks[i]);
            blocks[i] = NULL;
            sizes[i] = 0;
        }
        live += sizes[i];
        largest = live > largest ? live : largest;
    }
    printf("%zu live, %zu at most\n", live, largest);
    return 77;
}
