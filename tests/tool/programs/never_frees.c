// SPDX-License-Identifier: GPL-2.0-or-later
//
// A heap that only grows: its peak is at the end.

#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    size_t sum = 0;
    for (size_t i = 1; i < 2000; i++) {
        char *p = malloc(i % 123 + 1);
        p[0] = (char)i;
        sum += i % 123 + 1;
    }
    printf("%zu\n", sum);
    return 0;
}
