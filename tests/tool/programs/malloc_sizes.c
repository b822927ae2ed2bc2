// SPDX-License-Identifier: GPL-2.0-or-later
//
// malloc and free over sizes from 0 to some megabytes, freed in another order than allocated.

#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N 400

static unsigned char *blocks[N];
static size_t sizes[N];

int main(void)
{
    unsigned wrong = 0;
    size_t asked = 0;
    for (int i = 0; i < N; i++) {
        sizes[i] = i < 100 ? (size_t)i : (size_t)i * i * 13;
        asked += sizes[i];
        blocks[i] = malloc(sizes[i]);
        wrong += !blocks[i] || malloc_usable_size(blocks[i]) < sizes[i] || (uintptr_t)blocks[i] % 16 != 0;
        memset(blocks[i], i, sizes[i]);
    }
    for (int step = 0; step < 7; step++) {
        for (int i = step; i < N; i += 7) {
            for (size_t k = 0; k < sizes[i]; k += 97)
                wrong += blocks[i][k] != (unsigned char)i;
            free(blocks[i]);
        }
    }
    free(NULL);
    void *first = malloc(0), *second = malloc(0);
    printf("%zu bytes, %u wrong, empty blocks are %s\n", asked, wrong,
           first && second && first != second ? "two" : "one");
    free(first);
    free(second);
    return 3;
}
