// SPDX-License-Identifier: GPL-2.0-or-later
//
// libc10.so as the recorder knows it: the function through which PyTorch's caching allocator reports what it hands out,
// with the arguments of the release that FORM stands for.

#include <cstddef>
#include <cstdint>

namespace c10
{
struct Device {
    int8_t type;
    int8_t index;
};
#if FORM == 16
void __attribute__((noinline)) reportMemoryUsageToProfiler(void *, int64_t, Device)
{
    __asm__ volatile("");
}
#elif FORM == 110
void __attribute__((noinline)) reportMemoryUsageToProfiler(void *, int64_t, int64_t, int64_t, Device)
{
    __asm__ volatile("");
}
#else
void __attribute__((noinline)) reportMemoryUsageToProfiler(void *, int64_t, size_t, size_t, Device)
{
    __asm__ volatile("");
}
void __attribute__((noinline)) reportOutOfMemoryToProfiler(int64_t, size_t, size_t, Device)
{
    __asm__ volatile("");
}
#endif
} // namespace c10
