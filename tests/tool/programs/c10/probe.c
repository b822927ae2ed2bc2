// SPDX-License-Identifier: GPL-2.0-or-later
//
// Fails a thousand times from one place and goes on; then asks in other ways, once each, and while a stream is
// captured.

#include <stdio.h>

#define MIB ((size_t)1 << 20)

int cudaMalloc(void **, size_t);
int cudaMallocAsync(void **, size_t, void *);
int cudaMallocHost(void **, size_t);
int cuMemCreate(unsigned long long *, size_t, const void *, unsigned long long);

// The simulation has none. Any object may have the runtime in it.
__attribute__((noinline)) int cudaStreamBeginCapture(void *stream, int mode)
{
    __asm__ volatile("" : : "r"(stream), "r"(mode));
    return 0;
}

__attribute__((noinline)) int cudaStreamEndCapture(void *stream, void **graph)
{
    __asm__ volatile("" : : "r"(stream), "r"(graph));
    return 0;
}

__attribute__((noinline)) int probe(size_t bytes)
{
    void *p;
    return cudaMalloc(&p, bytes) != 0;
}

__attribute__((noinline)) int captured(size_t bytes)
{
    void *p, *graph;
    cudaStreamBeginCapture(NULL, 0);
    int failed = cudaMalloc(&p, bytes) != 0;
    cudaStreamEndCapture(NULL, &graph);
    return failed;
}

int main(void)
{
    // CUmemAllocationProp: pinned memory of device 0.
    const struct {
        int type, handle_types, location_type, location;
        void *windows;
        unsigned char flags[8];
    } of_device = {1, 0, 1, 0, NULL, {0}};
    unsigned long long handle;
    void *p;
    int n_failed = 0;
    for (size_t i = 0; i < 1000; i++)
        n_failed += probe((8192 - i) * MIB);
    n_failed += cudaMallocAsync(&p, 8192 * MIB, NULL) != 0;
    n_failed += cudaMallocHost(&p, 8192 * MIB) != 0;
    n_failed += cuMemCreate(&handle, 8192 * MIB, &of_device, 0) != 0;
    n_failed += captured(8192 * MIB);
    printf("%d\n", n_failed);
    return 0;
}
