// SPDX-License-Identifier: GPL-2.0-or-later
//
// Tensors in device memory, in pinned memory and in plain memory, and requests that are refused. A mark at each point.

#include "../../../../jmassif/jmassif.h"
#include "bfc_allocator.h"

#include <cstdio>
#include <cstdlib>

extern "C" int cuInit(unsigned);
extern "C" int cuDevicePrimaryCtxRetain(void **, int);
extern "C" int cuCtxSetCurrent(void *);

using namespace NAMESPACE;

static const size_t MIB = 1 << 20;

static __attribute__((noinline)) void *variable(BFCAllocator &allocator, size_t bytes)
{
    return allocator.AllocateRaw(256, bytes, AllocationAttributes{true});
}

int main()
{
    void *context = nullptr;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
        return 1;
    char *device = device_region(64 * MIB), *pinned = pinned_region(8 * MIB);
    char *plain = static_cast<char *>(std::malloc(4 * MIB));
    if (!device || !pinned || !plain)
        return 1;
    BFCAllocator on_device(device, 64 * MIB), on_pinned(pinned, 8 * MIB), on_host(plain, 4 * MIB);
    JMASSIF_MARK("reserved");
    void *weights = variable(on_device, 1000), *activation = variable(on_device, 40 * MIB);
    void *staging = variable(on_pinned, 2 * MIB), *on_heap = variable(on_host, 1 * MIB);
    void *refused = variable(on_device, 30 * MIB);
    JMASSIF_MARK("full");
    on_device.DeallocateRaw(activation);
    on_device.DeallocateRaw(refused);
    JMASSIF_MARK("one freed");
    on_pinned.DeallocateRaw(staging);
    on_host.DeallocateRaw(on_heap);
    on_device.DeallocateRaw(weights);
    free_device_region(device);
    JMASSIF_MARK("end");
    std::printf("%d\n", refused == nullptr);
    return 0;
}
