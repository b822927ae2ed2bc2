// SPDX-License-Identifier: GPL-2.0-or-later
//
// Benchmark: pairs of malloc and free at the end of a chain of calls, eight sizes in turn.
//
//     storm PAIRS [MARKED]
//
// The last MARKED pairs lie between marks (steps.c).

#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mark.h"

static const size_t sizes[] = {16, 24, 64, 100, 256, 1000, 4096, 20000};

static __attribute__((noinline)) void pair(int depth, long i)
{
    if (depth > 0) {
        pair(depth - 1, i);
        __asm__ volatile(""); // no tail call: every level is a frame
        return;
    }
    void *volatile p = malloc(sizes[i & 7]);
    free(p);
}

int main(int argc, char **argv)
{
    long n = argc > 1 ? atol(argv[1]) : 1000000;
    long marked = argc > 2 ? atol(argv[2]) : 0;
    for (long i = 0; i < n; i++) {
        if (i == n - marked)
            syscall(SYS_getpgid, MARK);
        pair(20, i);
    }
    syscall(SYS_getpgid, MARK);
    return 0;
}
