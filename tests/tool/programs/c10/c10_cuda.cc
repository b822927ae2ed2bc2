// SPDX-License-Identifier: GPL-2.0-or-later
//
// libc10_cuda.so in small: two segments of device memory, blocks handed out of them and reported, and what
// memory_allocated() and memory_reserved() would say.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

extern "C" int cudaMalloc(void **, size_t);
extern "C" int cudaFree(void *);
extern "C" int cudaMallocAsync(void **, size_t, void *);

namespace c10
{
struct Device {
    int8_t type;
    int8_t index;
};
#if FORM == 16
void reportMemoryUsageToProfiler(void *, int64_t, Device);
#elif FORM == 110
void reportMemoryUsageToProfiler(void *, int64_t, int64_t, int64_t, Device);
#else
void reportMemoryUsageToProfiler(void *, int64_t, size_t, size_t, Device);
#endif
} // namespace c10

static size_t allocated, reserved;

static void report(void *block, int64_t bytes)
{
    allocated += bytes;
#if FORM == 16
    c10::reportMemoryUsageToProfiler((char *)block + 0x700000000000, bytes,
                                     {1, 0}); // a number that is no device address
#elif FORM == 110
    c10::reportMemoryUsageToProfiler(block, bytes, (int64_t)allocated, (int64_t)reserved, {1, 0});
#else
    c10::reportMemoryUsageToProfiler(block, bytes, allocated, reserved, {1, 0});
#endif
}

extern "C" __attribute__((noinline)) char *new_segment(size_t bytes)
{
    void *p = nullptr;
    if (cudaMalloc(&p, bytes) != 0)
        return nullptr;
    reserved += bytes;
    return (char *)p;
}

// As it is when memory has run out: what the cache holds is freed, and the allocation tried again.
extern "C" __attribute__((noinline)) char *retried_segment(char *cached, size_t cached_bytes, size_t bytes)
{
    void *p = nullptr;
    if (cudaMalloc(&p, bytes) == 0)
        return nullptr; // it should have failed
    cudaFree(cached);
    reserved -= cached_bytes;
    return new_segment(bytes);
}

// The driver's own pool instead of a cache: no reports.
extern "C" __attribute__((noinline)) char *pool_block(size_t bytes)
{
    void *p = nullptr;
    return cudaMallocAsync(&p, bytes, nullptr) == 0 ? (char *)p : nullptr;
}

// Without a cache, if the environment says so when it is first asked: every tensor is an allocation of the runtime's,
// and nothing is reported.
extern "C" __attribute__((noinline)) char *uncached_block(size_t bytes)
{
    static const bool is_uncached = getenv("PYTORCH_NO_CUDA_MEMORY_CACHING") != nullptr;
    (void)is_uncached;
    void *p = nullptr;
    return cudaMalloc(&p, bytes) == 0 ? (char *)p : nullptr;
}

extern "C" __attribute__((noinline)) void hand_out(char *block, size_t bytes)
{
    report(block, (int64_t)bytes);
}

extern "C" __attribute__((noinline)) void take_back(char *block, size_t bytes)
{
    report(block, -(int64_t)bytes);
}

extern "C" __attribute__((noinline)) void free_segment(char *segment, size_t bytes)
{
    cudaFree(segment);
    reserved -= bytes;
}

extern "C" void say(const char *point)
{
    printf("%s %zu %zu\n", point, allocated, reserved);
}
