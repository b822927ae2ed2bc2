/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A program that uses the driver API alone, without a runtime, as inference engines and bindings
 * do. Prints the simulation's figures at its fullest and at its end. */
#include <string.h>

#include "program.h"

static NOINLINE CUdeviceptr make_tensor(size_t bytes)
{
    CUdeviceptr address;
    MUST(cuMemAlloc_v2(&address, bytes));
    return address;
}

static NOINLINE void *make_staging(size_t bytes)
{
    void *pointer;
    MUST(cuMemHostAlloc(&pointer, bytes, 0));
    return pointer;
}

static NOINLINE CUdeviceptr make_scratch(size_t bytes, CUstream stream)
{
    CUdeviceptr address;
    MUST(cuMemAllocAsync(&address, bytes, stream));
    return address;
}

int main(void)
{
    CUcontext context, popped;
    CUdevice device;
    CUmodule module;
    CUstream stream;
    int integrated;
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDeviceGetAttribute(&integrated, CU_DEVICE_ATTRIBUTE_INTEGRATED, device));
    MUST(cuCtxCreate_v2(&context, 0, device));
    MUST(cuModuleLoadData(&module, "image"));
    MUST(cuStreamCreate(&stream, 1));
    CUdeviceptr input = make_tensor(602112), output = make_tensor(4000), weights = make_tensor(MIB(44));
    CUdeviceptr scratch = make_scratch(3000000, stream);
    char *staging = make_staging(602112);
    memset(staging, 5, 602112);
    MUST(cuMemcpyHtoD_v2(input, staging, 602112));
    MUST(cuMemsetD8_v2(output, 9, 4000));
    MUST(cuMemcpyDtoH_v2(staging, output, 4000));
    MUST(staging[3999] != 9 || staging[4000] != 5);
    printf("integrated %d\n", integrated);
    print_stats("full");
    MUST(cuMemFreeAsync(scratch, stream));
    MUST(cuStreamSynchronize(stream));
    MUST(cuMemFreeHost(staging));
    MUST(cuMemFree_v2(weights));
    MUST(cuMemFree_v2(output));
    MUST(cuMemFree_v2(input));
    MUST(cuStreamDestroy_v2(stream));
    MUST(cuModuleUnload(module));
    MUST(cuCtxPopCurrent_v2(&popped));
    MUST(popped != context);
    MUST(cuCtxDestroy_v2(context));
    print_stats("end");
    return 0;
}
