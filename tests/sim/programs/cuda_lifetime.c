/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How long CUDA memory lives, one story a run:  cuda_lifetime --list | STORY. Each story prints the
 * simulation's figures at the points it names ("point NAME", then lines "KEY VALUE"). */
#include <pthread.h>
#include <string.h>

#include "program.h"

static const CUmemAllocationProp vmm_properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                                   .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
static const CUmemPoolProps pool_properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                               .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};

static void make_context(void)
{
    MUST(cudaFree(NULL));
}

/* Virtual memory management. */

static void vmm_release_before_unmap(void)
{
    CUmemGenericAllocationHandle memory;
    CUdeviceptr range;
    make_context();
    MUST(cuMemCreate(&memory, MIB(4), &vmm_properties, 0));
    MUST(cuMemAddressReserve(&range, MIB(4), 0, 0, 0));
    MUST(cuMemMap(range, MIB(4), 0, memory, 0));
    print_stats("mapped");
    MUST(cuMemRelease(memory));
    print_stats("released");
    MUST(cuMemUnmap(range, MIB(4)));
    print_stats("unmapped");
    MUST(cuMemAddressFree(range, MIB(4)));
}

static void vmm_two_mappings(void)
{
    CUmemGenericAllocationHandle memory;
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUdeviceptr range;
    make_context();
    MUST(cuMemCreate(&memory, MIB(2), &vmm_properties, 0));
    MUST(cuMemAddressReserve(&range, MIB(4), 0, 0, 0));
    MUST(cuMemMap(range, MIB(2), 0, memory, 0));
    MUST(cuMemMap(range + MIB(2), MIB(2), 0, memory, 0));
    MUST(cuMemSetAccess(range, MIB(4), &access, 1));
    *(volatile int *)(uintptr_t)range = 42;
    MUST(*(volatile int *)(uintptr_t)(range + MIB(2)) != 42);
    MUST(cuMemRelease(memory));
    print_stats("two_mappings");
    MUST(cuMemUnmap(range, MIB(2)));
    print_stats("one_mapping");
    MUST(cuMemUnmap(range + MIB(2), MIB(2)));
    print_stats("no_mapping");
    MUST(cuMemAddressFree(range, MIB(4)));
}

static void vmm_retained_handle(void)
{
    CUmemGenericAllocationHandle memory, again;
    CUdeviceptr range;
    make_context();
    MUST(cuMemCreate(&memory, MIB(2), &vmm_properties, 0));
    MUST(cuMemAddressReserve(&range, MIB(2), 0, 0, 0));
    MUST(cuMemMap(range, MIB(2), 0, memory, 0));
    MUST(cuMemRelease(memory));
    MUST(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(range + 4096)));
    MUST(cuMemUnmap(range, MIB(2)));
    print_stats("retained");
    MUST(cuMemMap(range, MIB(2), 0, again, 0)); /* and mapped again, where it was */
    MUST(cuMemRelease(again));
    print_stats("mapped_again");
    MUST(cuMemUnmap(range, MIB(2)));
    print_stats("gone");
    MUST(cuMemAddressFree(range, MIB(2)));
}

/* Pools. */

static void pool_used_and_reserved(void)
{
    void *first, *second;
    make_context();
    MUST(cudaMallocAsync(&first, MIB(20), NULL));
    print_stats("one_block");
    MUST(cudaMallocAsync(&second, MIB(20), NULL));
    print_stats("two_blocks");
    MUST(cudaFreeAsync(first, NULL));
    print_stats("freed_one");
    MUST(cudaFreeAsync(second, NULL));
    print_stats("freed_both");
    MUST(cudaStreamSynchronize(NULL)); /* above the threshold, which is 0 */
    print_stats("synchronized");
}

static void pool_threshold(void)
{
    uint64_t threshold = UINT64_MAX;
    cudaMemPool_t pool;
    void *block;
    make_context();
    MUST(cudaDeviceGetDefaultMemPool(&pool, 0));
    MUST(cudaMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
    MUST(cudaMallocAsync(&block, MIB(40), NULL));
    MUST(cudaFreeAsync(block, NULL));
    MUST(cudaDeviceSynchronize());
    print_stats("kept");
    MUST(cudaMemPoolTrimTo(pool, MIB(1)));
    print_stats("not_trimmed"); /* its only chunk is larger than what is to stay */
    MUST(cudaMemPoolTrimTo(pool, 0));
    print_stats("trimmed");
}

static void pool_destroy(void)
{
    cudaMemPool_t pool;
    void *block;
    make_context();
    MUST(cudaMemPoolCreate(&pool, &pool_properties));
    MUST(cudaMallocFromPoolAsync(&block, MIB(3), pool, NULL));
    MUST(cudaMemPoolDestroy(pool)); /* documented: stays until its blocks are freed */
    print_stats("destroyed");
    MUST(cudaFree(block));
    print_stats("last_block_freed");
}

static void pool_survives_device_reset(void)
{
    void *in_pool, *in_context;
    make_context();
    MUST(cudaMallocAsync(&in_pool, MIB(1), NULL));
    MUST(cudaMalloc(&in_context, MIB(1)));
    print_stats("both");
    MUST(cudaDeviceReset());
    print_stats("reset");
    MUST(cudaFree(in_pool));
    MUST(cudaDeviceSynchronize());
    print_stats("freed");
}

/* Contexts. */

static void make_one_of_each(void)
{
    static char ranges[2][4096]; /* no range can be registered twice */
    static int n_made;
    CUDA_ARRAY_DESCRIPTOR shape = {64, 64, CU_AD_FORMAT_FLOAT, 1};
    CUdeviceptr address;
    CUarray array;
    CUstream stream;
    CUevent event;
    CUmodule module;
    void *pointer;
    MUST(cuMemAlloc_v2(&address, 1000));
    MUST(cuMemAlloc_v2(&address, MIB(5)));
    MUST(cuMemAllocManaged(&address, 2000, CU_MEM_ATTACH_GLOBAL));
    MUST(cuMemHostAlloc(&pointer, 3000, 0));
    MUST(cuMemHostRegister_v2(ranges[n_made], sizeof ranges[n_made], 0));
    MUST(cuArrayCreate_v2(&array, &shape));
    MUST(cuStreamCreate(&stream, 0));
    MUST(cuEventCreate(&event, 0));
    MUST(cuModuleLoadData(&module, "image"));
    n_made++;
}

static void context_destroy(void)
{
    CUcontext first, second;
    MUST(cuInit(0));
    print_stats("started");
    MUST(cuCtxCreate_v2(&first, 0, 0));
    make_one_of_each();
    print_stats("one_context");
    MUST(cuCtxCreate_v2(&second, 0, 0));
    make_one_of_each();
    print_stats("two_contexts");
    MUST(cuCtxDestroy_v2(first)); /* not the current one */
    print_stats("first_destroyed");
    MUST(cuCtxDetach(second));
    print_stats("both_destroyed");
}

static void device_reset(void)
{
    void *pointer;
    make_context();
    make_one_of_each();
    print_stats("in_use");
    MUST(cudaDeviceReset());
    print_stats("reset");
    MUST(cudaMalloc(&pointer, 5000)); /* begins it again */
    print_stats("begun_again");
    MUST(cudaFree(pointer));
    MUST(cudaDeviceReset());
    print_stats("reset_again");
}

static void primary_reset(void)
{
    CUcontext primary;
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&primary, 0));
    MUST(cuCtxSetCurrent(primary));
    make_one_of_each();
    print_stats("in_use");
    MUST(cuDevicePrimaryCtxReset_v2(0));
    print_stats("reset");
    MUST(cuDevicePrimaryCtxRelease_v2(0));
    print_stats("released");
}

static void primary_release(void)
{
    CUcontext primary;
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&primary, 0));
    MUST(cuDevicePrimaryCtxRetain(&primary, 0));
    MUST(cuCtxSetCurrent(primary));
    make_one_of_each();
    MUST(cuDevicePrimaryCtxRelease_v2(0));
    print_stats("retained_once");
    MUST(cuDevicePrimaryCtxRelease_v2(0));
    print_stats("released");
}

/* Who frees, and what. */

static void *free_it(void *pointer)
{
    MUST(cudaFree(pointer));
    return NULL;
}

static void freed_by_another_thread(void)
{
    pthread_t thread;
    void *pointer;
    MUST(cudaMalloc(&pointer, 123457));
    print_stats("allocated");
    MUST(pthread_create(&thread, NULL, free_it, pointer));
    MUST(pthread_join(thread, NULL));
    print_stats("freed");
}

static void freed_twice(void)
{
    void *pointer, *other;
    MUST(cudaMalloc(&other, 7777));
    MUST(cudaMalloc(&pointer, 5555));
    MUST(cudaFree(pointer));
    MUST(cudaFree(pointer) != CUDA_ERROR_INVALID_VALUE);
    print_stats("freed_twice");
    MUST(cudaFree(other));
    print_stats("freed_all");
}

static void unknown_pointer(void)
{
    static char ours[64];
    char *inside;
    void *pointer;
    MUST(cudaMalloc(&pointer, 5555));
    inside = (char *)pointer + 1024;
    MUST(cudaFree(ours) != CUDA_ERROR_INVALID_VALUE);
    MUST(cudaFree(inside) != CUDA_ERROR_INVALID_VALUE);
    MUST(cudaFreeHost(pointer) != CUDA_ERROR_INVALID_VALUE);
    print_stats("nothing_freed");
    MUST(cudaFree(pointer));
    print_stats("freed");
}

static void address_used_again(void)
{
    void *first, *second;
    MUST(cudaMalloc(&first, MIB(3)));
    MUST(cudaFree(first));
    MUST(cudaMalloc(&second, MIB(2)));
    print_stats("second");
    MUST(cudaFree(second));
    print_stats("freed");
}

/* Memory of others, and of the program. */

static void ipc_open_close(void)
{
    CUipcMemHandle handle;
    void *first, *second;
    make_context();
    jmsim_foreign_ipc_handle(&handle, 654321);
    MUST(cudaIpcOpenMemHandle(&first, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    MUST(cudaIpcOpenMemHandle(&second, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    MUST(first != second); /* documented: the same pointer, counted */
    print_stats("opened_twice");
    MUST(cudaIpcCloseMemHandle(first));
    print_stats("closed_once");
    MUST(cudaIpcCloseMemHandle(second));
    print_stats("closed");
}

static void host_register(void)
{
    char *range = malloc(100000);
    MUST(!range);
    make_context();
    print_stats("before");
    MUST(cudaHostRegister(range, 100000, 0));
    print_stats("registered");
    MUST(cudaHostUnregister(range));
    print_stats("unregistered");
    free(range);
}

/* CUDA makes no more levels than halve the largest dimension to 1, and layers and faces stay as many. */
static void mipmap_levels(void)
{
    const struct cudaChannelFormatDesc one_float = {32, 0, 0, 0, cudaChannelFormatKindFloat};
    const CUDA_ARRAY3D_DESCRIPTOR cube = {16, 16, 6, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP};
    cudaMipmappedArray_t arrays[4];
    CUmipmappedArray faces;
    MUST(cudaMallocMipmappedArray(&arrays[0], &one_float, (struct cudaExtent){64, 32, 0}, 20, 0));
    print_stats("too_many_levels");
    MUST(cudaMallocMipmappedArray(&arrays[1], &one_float, (struct cudaExtent){64, 32, 0}, 0, 0));
    print_stats("no_level");
    MUST(cudaMallocMipmappedArray(&arrays[2], &one_float, (struct cudaExtent){16, 16, 8}, 3, 0));
    print_stats("depth");
    MUST(cudaMallocMipmappedArray(&arrays[3], &one_float, (struct cudaExtent){16, 16, 8}, 3, CUDA_ARRAY3D_LAYERED));
    print_stats("layers");
    MUST(cuMipmappedArrayCreate(&faces, &cube, 9));
    print_stats("faces");
    for (int i = 0; i < 4; i++)
        MUST(cudaFreeMipmappedArray(arrays[i]));
    MUST(cuMipmappedArrayDestroy(faces));
    print_stats("freed");
}

static const struct {
    const char *name;
    void (*tell)(void);
} stories[] = {
#define STORY(name)                                                                                                    \
    {                                                                                                                  \
#name, name                                                                                                    \
    }
    STORY(vmm_release_before_unmap),
    STORY(vmm_two_mappings),
    STORY(vmm_retained_handle),
    STORY(pool_used_and_reserved),
    STORY(pool_threshold),
    STORY(pool_destroy),
    STORY(pool_survives_device_reset),
    STORY(context_destroy),
    STORY(device_reset),
    STORY(primary_reset),
    STORY(primary_release),
    STORY(freed_by_another_thread),
    STORY(freed_twice),
    STORY(unknown_pointer),
    STORY(address_used_again),
    STORY(ipc_open_close),
    STORY(host_register),
    STORY(mipmap_levels),
#undef STORY
};

int main(int argc, char **argv)
{
    int list = argc == 2 && strcmp(argv[1], "--list") == 0;
    for (size_t i = 0; argc == 2 && i < sizeof stories / sizeof *stories; i++) {
        if (list)
            puts(stories[i].name);
        else if (strcmp(stories[i].name, argv[1]) == 0) {
            stories[i].tell();
            return 0;
        }
    }
    if (list)
        return 0;
    fprintf(stderr, "usage: cuda_lifetime --list | STORY\n");
    return 2;
}
