// SPDX-License-Identifier: GPL-2.0-or-later
//
// Linked to a library with a malloc of its own.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void)
{
    char *blocks[50];
    for (size_t i = 0; i < 50; i++) {
        blocks[i] = malloc(1000 + i);
        memset(blocks[i], (int)i, 1000 + i);
    }
    for (size_t i = 0; i < 50; i += 2)
        blocks[i] = realloc(blocks[i], 3000);
    unsigned wrong = 0;
    for (size_t i = 0; i < 50; i++) {
        wrong += blocks[i][0] != (char)i || blocks[i][999] != (char)i;
        free(blocks[i]);
    }
    char *zeroes = calloc(100, 10);
    printf("%u wrong, %d\n", wrong, zeroes[999]);
    return 0;
}
