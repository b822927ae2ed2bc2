// SPDX-License-Identifier: GPL-2.0-or-later
//
// A team of OpenMP threads, whom nobody names. Prints what each has allocated.

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#define TEAM 4

int main(void)
{
    static size_t allocated[TEAM];
#pragma omp parallel num_threads(TEAM)
    {
        int self = omp_get_thread_num();
#pragma omp for schedule(static)
        for (int i = 0; i < 400; i++) {
            allocated[self] += 1000 * self + i;
            if (!malloc(1000 * self + i))
                abort();
        }
    }
    for (int i = 0; i < TEAM; i++)
        printf("%zu\n", allocated[i]);
    return 0;
}
