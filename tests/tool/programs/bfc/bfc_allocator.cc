// SPDX-License-Identifier: GPL-2.0-or-later
//
// libtensorflow_framework.so.2 in small: blocks handed out of a region one after the other.

#include "bfc_allocator.h"

extern "C" int cuMemAlloc_v2(char **, size_t);
extern "C" int cuMemHostAlloc(char **, size_t, unsigned);
extern "C" int cuMemFree_v2(char *);

namespace NAMESPACE
{
void *BFCAllocator::AllocateRaw(size_t alignment, size_t bytes, const AllocationAttributes &)
{
    size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    if (rounded > static_cast<size_t>(end - next))
        return nullptr;
    char *block = next;
    next += rounded;
    return block;
}

void BFCAllocator::DeallocateRaw(void *) {}

char *device_region(size_t bytes)
{
    char *region = nullptr;
    return cuMemAlloc_v2(&region, bytes) == 0 ? region : nullptr;
}

char *pinned_region(size_t bytes)
{
    char *region = nullptr;
    return cuMemHostAlloc(&region, bytes, 0) == 0 ? region : nullptr;
}

void free_device_region(char *region)
{
    cuMemFree_v2(region);
}
} // namespace NAMESPACE
