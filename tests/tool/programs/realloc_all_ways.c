// SPDX-License-Identifier: GPL-2.0-or-later
//
// realloc: of nothing, to nothing, growing, shrinking, in place and moving, and reallocarray.

#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned wrong;

static void check(const char *p, size_t n, char c)
{
    for (size_t i = 0; i < n; i++)
        wrong += p[i] != c;
}

int main(void)
{
    volatile size_t huge = SIZE_MAX / 2;
    char *p = realloc(NULL, 10);
    memset(p, 'a', 10);
    for (size_t n = 11; n < 3000; n += n / 5) {
        char *barrier = malloc(24); // so that most growth has to move
        p = realloc(p, n);
        check(p, 10, 'a');
        free(barrier);
    }
    p = realloc(p, 500000);
    check(p, 10, 'a');
    char *same = p;
    p = realloc(p, 499990);
    p = realloc(p, 499999); // a few bytes either way need not move
    wrong += p != same;
    p = realloc(p, 5);
    check(p, 5, 'a');

    char *kept = malloc(100);
    memset(kept, 'k', 100);
    errno = 0;
    wrong += reallocarray(kept, huge, 16) != NULL || errno != ENOMEM;
    kept = reallocarray(kept, 1000, 30);
    check(kept, 100, 'k');

    char *gone = malloc(2000);
    printf("%u wrong, realloc to nothing gives %s\n", wrong, realloc(gone, 0) ? "memory" : "nothing");
    void *empty = realloc(NULL, 0);
    printf("realloc of nothing to nothing gives %s\n", empty ? "memory" : "nothing");
    free(empty);
    free(kept);
    free(p);
    return (int)wrong;
}
