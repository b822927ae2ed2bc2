// SPDX-License-Identifier: GPL-2.0-or-later
//
// Benchmark: pairs of cudaMalloc and cudaFree at the end of a chain of calls, eight sizes in turn.
//
//     cuda_storm PAIRS

#include <stdlib.h>

int cudaMalloc(void **p, size_t bytes);
int cudaFree(void *p);

static const size_t sizes[] = {512, 4096, 65536, 100000, 1 << 20, 3 << 20, 5000, 1 << 16};

static __attribute__((noinline)) int pair(int depth, long i)
{
    if (depth > 0) {
        int failed = pair(depth - 1, i);
        __asm__ volatile(""); // no tail call: every level is a frame
        return failed;
    }
    void *p;
    return cudaMalloc(&p, sizes[i & 7]) || cudaFree(p);
}

int main(int argc, char **argv)
{
    long n = argc > 1 ? atol(argv[1]) : 100000;
    int failed = 0;
    for (long i = 0; i < n; i++)
        failed |= pair(20, i);
    return failed;
}
