// SPDX-License-Identifier: GPL-2.0-or-later
//
// calloc gives zeroes also in memory that was used before, and refuses products that overflow.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned dirty(const unsigned char *p, size_t n)
{
    unsigned found = 0;
    for (size_t i = 0; i < n; i++)
        found += p[i] != 0;
    return found;
}

int main(void)
{
    volatile size_t huge = SIZE_MAX / 2;
    unsigned found = 0;
    for (size_t n = 1; n < 20000; n *= 3) {
        unsigned char *used = malloc(n * 7);
        memset(used, 0xee, n * 7);
        free(used);
        unsigned char *zeroed = calloc(n, 7);
        found += dirty(zeroed, n * 7);
        unsigned char *kept = calloc(7, n);
        found += dirty(kept, n * 7);
        free(zeroed);
        if (n % 2)
            free(kept);
    }
    // Not errno: older Valgrinds' calloc does not set it when the product overflows.
    printf("%u dirty bytes, overflow gives %s\n", found, calloc(huge, 3) ? "memory" : "nothing");
    void *nothing = calloc(0, 16);
    free(nothing);
    return found != 0;
}
