/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls that fail, each printed as "FUNCTION CODE" when it returned that code, in order. Nothing is live
 * at the end but the context. */
#include "program.h"

#define TOO_BIG ((size_t)1 << 46)

static int n_wrong;

static void report(const char *name, int code, int wanted)
{
    printf("%s %d\n", name, code);
    if (code != wanted) {
        fprintf(stderr, "%s: %d, not %d\n", name, code, wanted);
        n_wrong++;
    }
}

#define FAILS(wanted, name, ...) report(#name, name(__VA_ARGS__), wanted)

static void before_start(void)
{
    CUdeviceptr address;
    FAILS(CUDA_ERROR_NOT_INITIALIZED, cuMemAlloc_v2, &address, 4096);
    MUST(cuInit(0));
    FAILS(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc_v2, &address, 4096);
    FAILS(CUDA_ERROR_INVALID_CONTEXT, cuMemFree_v2, 4096);
    FAILS(CUDA_ERROR_INVALID_DEVICE, cudaSetDevice, 7);
}

static void too_big(void)
{
    static const struct cudaChannelFormatDesc bytes = {8, 0, 0, 0, cudaChannelFormatKindUnsigned};
    CUmemAllocationProp vmm = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr address;
    cudaArray_t array;
    void *pointer;
    size_t pitch;
    FAILS(CUDA_ERROR_OUT_OF_MEMORY, cudaMalloc, &pointer, TOO_BIG);
    FAILS(CUDA_ERROR_OUT_OF_MEMORY, cudaMallocPitch, &pointer, &pitch, TOO_BIG, 2);
    FAILS(CUDA_ERROR_OUT_OF_MEMORY, cudaMallocManaged, &pointer, TOO_BIG, CU_MEM_ATTACH_GLOBAL);
    FAILS(CUDA_ERROR_OUT_OF_MEMORY, cudaMallocHost, &pointer, TOO_BIG);
    FAILS(CUDA_ERROR_OUT_OF_MEMORY, cudaHostAlloc, &pointer, TOO_BIG, 0);
    FAILS(CUDA_ERROR_OUT_OF_MEMORY, cudaMallocAsync, &pointer, TOO_BIG, NULL);
    FAILS(CUDA_ERROR_OUT_OF_MEMORY, cudaMallocArray, &array, &bytes, TOO_BIG, 1, 0);
    FAILS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc_v2, &address, TOO_BIG);
    FAILS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocAsync, &address, TOO_BIG, NULL);
    FAILS(CUDA_ERROR_OUT_OF_MEMORY, cuMemCreate, &handle, TOO_BIG, &vmm, 0);
}

static void bad_arguments(void)
{
    CUmemAllocationProp vmm = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemGenericAllocationHandle handle;
    CUDA_ARRAY_DESCRIPTOR shape = {16, 16, 0x7f, 1};
    CUarray array;
    CUmemoryPool pool;
    CUdeviceptr address;
    CUipcMemHandle ipc = {"nobody's"};
    void *pointer;
    size_t pitch;
    FAILS(CUDA_ERROR_INVALID_VALUE, cudaMalloc, NULL, 4096);
    FAILS(CUDA_ERROR_INVALID_VALUE, cudaMallocManaged, &pointer, 0, CU_MEM_ATTACH_GLOBAL);
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemAlloc_v2, &address, 0);
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch_v2, &address, &pitch, 100, 10, 3);
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemHostAlloc, &pointer, 0, 0);
    FAILS(CUDA_ERROR_INVALID_VALUE, cuArrayCreate_v2, &array, &shape);
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemCreate, &handle, 4096, &vmm, 0); /* not a granule */
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemPoolCreate, &pool, NULL);
    FAILS(CUDA_ERROR_INVALID_HANDLE, cuIpcOpenMemHandle_v2, &address, ipc, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
}

static void bad_handles(void)
{
    static int on_host[1024];
    FAILS(CUDA_ERROR_INVALID_VALUE, cudaFree, on_host);
    FAILS(CUDA_ERROR_INVALID_VALUE, cudaFreeHost, on_host);
    FAILS(CUDA_ERROR_INVALID_HANDLE, cudaFreeArray, (cudaArray_t)on_host);
    FAILS(CUDA_ERROR_INVALID_HANDLE, cudaFreeMipmappedArray, (cudaMipmappedArray_t)on_host);
    FAILS(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cudaHostUnregister, on_host);
    FAILS(CUDA_ERROR_INVALID_VALUE, cudaFreeAsync, on_host, NULL);
    FAILS(CUDA_ERROR_INVALID_VALUE, cudaMemPoolDestroy, (cudaMemPool_t)on_host);
    FAILS(CUDA_ERROR_INVALID_VALUE, cudaIpcCloseMemHandle, on_host);
    FAILS(CUDA_ERROR_INVALID_HANDLE, cudaDestroyExternalMemory, (cudaExternalMemory_t)on_host);
    FAILS(CUDA_ERROR_INVALID_HANDLE, cudaStreamDestroy, (cudaStream_t)on_host);
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2, 0x1000);
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemRelease, 0x1000);
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemUnmap, MIB(512), MIB(2));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree, MIB(512), MIB(2));
    FAILS(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy_v2, (CUcontext)on_host);
    FAILS(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload, (CUmodule)on_host);
}

static void twice(void)
{
    static char range[8192];
    void *pointer;
    MUST(cudaMalloc(&pointer, 4096));
    MUST(cudaFree(pointer));
    FAILS(CUDA_ERROR_INVALID_VALUE, cudaFree, pointer);
    MUST(cudaHostRegister(range, sizeof range, 0));
    FAILS(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cudaHostRegister, range, 4096, 0);
    MUST(cudaHostUnregister(range));
}

int main(void)
{
    before_start();
    MUST(cudaFree(NULL));
    too_big();
    bad_arguments();
    bad_handles();
    twice();
    return n_wrong ? 1 : 0;
}
