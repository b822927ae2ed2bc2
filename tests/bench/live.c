// SPDX-License-Identifier: GPL-2.0-or-later
//
// Benchmark: many small blocks that stay alive, allocated from many different call stacks.
//
//     live BLOCKS STACKS [MARKED]
//
// The last MARKED allocations lie between marks (steps.c).

#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mark.h"

static __attribute__((noinline)) void *left(unsigned path, int depth);

static __attribute__((noinline)) void *right(unsigned path, int depth)
{
    void *volatile p = depth == 0 ? malloc(32) : path & 1 ? right(path >> 1, depth - 1) : left(path >> 1, depth - 1);
    return p;
}

static __attribute__((noinline)) void *left(unsigned path, int depth)
{
    void *volatile p = depth == 0 ? malloc(40) : path & 1 ? right(path >> 1, depth - 1) : left(path >> 1, depth - 1);
    return p;
}

int main(int argc, char **argv)
{
    long n = argc > 1 ? atol(argv[1]) : 1000000;
    long n_stacks = argc > 2 ? atol(argv[2]) : 50000;
    long marked = argc > 3 ? atol(argv[3]) : 0;
    void **all = malloc((size_t)n * sizeof *all);
    for (long i = 0; i < n; i++) {
        if (i == n - marked)
            syscall(SYS_getpgid, MARK);
        all[i] = left((unsigned)(i % n_stacks), 16);
        *(char *)all[i] = 1; // so that its page is there
    }
    syscall(SYS_getpgid, MARK);
    for (long i = 0; i < n; i++)
        free(all[i]);
    free(all);
    return 0;
}
