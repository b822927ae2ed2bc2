/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Allocation functions one by one, so that a test can say exactly what a profiler must have recorded:
 *
 *   cuda_each --list                the names of the functions
 *   cuda_each NAME                  calls it, once, in use_NAME, and prints what is live then
 *   cuda_each --in-turn [NAME…]     calls each of these, or all, prints what is live, and frees it; with a mark after
 *                                   each call and each free
 *
 * A line "expect KIND BYTES" is what the ledger must hold, "reserved pool BYTES" what the pools have
 * reserved in all. Whatever the call needs (a context, a pool, a reservation) is made before, in main
 * or in need_NAME, and is in no expectation. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "program.h"

#define NOCLONE __attribute__((noinline, noclone))

/* Not powers of two, so that no rounding can hide. */
enum {
    DEVICE_BYTES = 1000003,
    LARGE_BYTES = 5000011,
    HOST_BYTES = 300007,
    POOL_BYTES = 700001,
    WIDTH_BYTES = 1000,
    ROWS = 37,
    LAYERS = 3,
    WIDTH = 64,
    HEIGHT = 32,
    DEPTH = 4,
    LEVELS = 4,
    VMM_BYTES = 4 << 20,
    EXTERNAL_SIZE = 123456,
};

/* What the call under test made. */
static void *pointer;
static CUdeviceptr address, range;
static cudaArray_t array;
static CUarray driver_array;
static cudaMipmappedArray_t mipmapped;
static CUmipmappedArray driver_mipmapped;
static CUmemoryPool pool;
static CUmemGenericAllocationHandle memory;
static CUexternalMemory external;
static CUipcMemHandle ipc;
static char host[HOST_BYTES];

static const struct cudaChannelFormatDesc two_floats = {32, 32, 0, 0, cudaChannelFormatKindFloat};
static const CUmemPoolProps pool_properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                               .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
static const CUmemAllocationProp vmm_properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                                   .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                                   .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};

/* What is expected. Kept until all is over: printing allocates. */
static struct {
    const char *kind;
    size_t bytes;
} expected[2];
static int n_expected;

static void expect(const char *kind, size_t bytes)
{
    expected[n_expected].kind = kind;
    expected[n_expected++].bytes = bytes;
}

#define USE(name)  static NOCLONE void use_##name(void)
#define NEED(name) static void need_##name(void)
#define DROP(name) static void drop_##name(void)

static void nothing(void) {}

static int memory_file(size_t bytes)
{
    int fd = (int)syscall(SYS_memfd_create, "cuda_each", 0);
    MUST(fd < 0 || ftruncate(fd, (off_t)bytes) != 0);
    return fd;
}

/* Ways to free. */
DROP(cudaFree)
{
    MUST(cudaFree(pointer));
}
DROP(cudaFreeHost)
{
    MUST(cudaFreeHost(pointer));
}
DROP(cudaHostUnregister)
{
    MUST(cudaHostUnregister(host));
}
DROP(cudaFreeArray)
{
    MUST(cudaFreeArray(array));
}
DROP(cudaFreeMipmappedArray)
{
    MUST(cudaFreeMipmappedArray(mipmapped));
}
DROP(cudaFreeAsync)
{
    MUST(cudaFreeAsync(pointer, NULL));
    MUST(cudaDeviceSynchronize());
}
DROP(cudaFreeAsync_ptsz)
{
    MUST(cudaFreeAsync_ptsz(pointer, NULL));
    MUST(cudaDeviceSynchronize());
}
DROP(cudaFreeAsync_and_pool)
{
    drop_cudaFreeAsync();
    MUST(cudaMemPoolDestroy(pool));
}
DROP(cudaMemPoolDestroy)
{
    MUST(cudaMemPoolDestroy(pool));
}
DROP(cudaIpcCloseMemHandle)
{
    MUST(cudaIpcCloseMemHandle(pointer));
}
DROP(cudaDestroyExternalMemory)
{
    MUST(cudaDestroyExternalMemory(external));
}
DROP(cudaFree_and_external)
{
    MUST(cudaFree(pointer));
    MUST(cudaDestroyExternalMemory(external));
}
DROP(cuMemFree_v2)
{
    MUST(cuMemFree_v2(address));
}
DROP(cuMemFreeHost)
{
    MUST(cuMemFreeHost(pointer));
}
DROP(cuMemHostUnregister)
{
    MUST(cuMemHostUnregister(host));
}
DROP(cuArrayDestroy)
{
    MUST(cuArrayDestroy(driver_array));
}
DROP(cuMipmappedArrayDestroy)
{
    MUST(cuMipmappedArrayDestroy(driver_mipmapped));
}
DROP(cuMemFreeAsync)
{
    MUST(cuMemFreeAsync(address, NULL));
    MUST(cuCtxSynchronize());
}
DROP(cuMemFreeAsync_ptsz)
{
    MUST(cuMemFreeAsync_ptsz(address, NULL));
    MUST(cuStreamSynchronize_ptsz(NULL));
}
DROP(cuMemFreeAsync_and_pool)
{
    drop_cuMemFreeAsync();
    MUST(cuMemPoolDestroy(pool));
}
DROP(cuMemPoolDestroy)
{
    MUST(cuMemPoolDestroy(pool));
}
DROP(cuMemAddressFree)
{
    MUST(cuMemAddressFree(address, VMM_BYTES));
}
DROP(cuMemRelease)
{
    MUST(cuMemRelease(memory));
}
DROP(mapping)
{
    MUST(cuMemUnmap(range, VMM_BYTES));
    MUST(cuMemAddressFree(range, VMM_BYTES));
}
DROP(mapping_and_handle)
{
    drop_mapping();
    MUST(cuMemRelease(memory));
}
DROP(cuIpcCloseMemHandle)
{
    MUST(cuIpcCloseMemHandle(address));
}
DROP(cuDestroyExternalMemory)
{
    MUST(cuDestroyExternalMemory(external));
}
DROP(cuMemFree_and_external)
{
    MUST(cuMemFree_v2(address));
    MUST(cuDestroyExternalMemory(external));
}

/* The runtime. */

USE(cudaMalloc)
{
    MUST(cudaMalloc(&pointer, DEVICE_BYTES));
    expect("device", DEVICE_BYTES);
}

USE(cudaMallocPitch)
{
    size_t pitch;
    MUST(cudaMallocPitch(&pointer, &pitch, WIDTH_BYTES, ROWS));
    expect("device", pitch * ROWS);
}

USE(cudaMalloc3D)
{
    struct cudaPitchedPtr pitched;
    MUST(cudaMalloc3D(&pitched, (struct cudaExtent){WIDTH_BYTES, ROWS, LAYERS}));
    pointer = pitched.ptr;
    expect("device", pitched.pitch * ROWS * LAYERS);
}

USE(cudaMallocArray)
{
    MUST(cudaMallocArray(&array, &two_floats, WIDTH, HEIGHT, 0));
    expect("array", WIDTH * HEIGHT * 2 * sizeof(float));
}

USE(cudaMalloc3DArray)
{
    MUST(cudaMalloc3DArray(&array, &two_floats, (struct cudaExtent){WIDTH, HEIGHT, DEPTH}, 0));
    expect("array", WIDTH * HEIGHT * DEPTH * 2 * sizeof(float));
}

/* 64×32, 32×16, 16×8 and 8×4 elements. */
static const size_t MIPMAPPED_ELEMENTS = 2048 + 512 + 128 + 32;

USE(cudaMallocMipmappedArray)
{
    MUST(cudaMallocMipmappedArray(&mipmapped, &two_floats, (struct cudaExtent){WIDTH, HEIGHT, 0}, LEVELS, 0));
    expect("array", MIPMAPPED_ELEMENTS * 2 * sizeof(float));
}

USE(cudaMallocManaged)
{
    MUST(cudaMallocManaged(&pointer, DEVICE_BYTES, CU_MEM_ATTACH_GLOBAL));
    expect("managed", DEVICE_BYTES);
}

USE(cudaMallocHost)
{
    MUST(cudaMallocHost(&pointer, HOST_BYTES));
    expect("pinned", HOST_BYTES);
}

USE(cudaHostAlloc)
{
    MUST(cudaHostAlloc(&pointer, HOST_BYTES, 0));
    expect("pinned", HOST_BYTES);
}

USE(cudaHostRegister) /* memory that was there before */
{
    MUST(cudaHostRegister(host, sizeof host, 0));
    expect("pinned", 0);
}

USE(cudaMallocAsync)
{
    MUST(cudaMallocAsync(&pointer, POOL_BYTES, NULL));
    expect("pool", POOL_BYTES);
}

USE(cudaMallocAsync_ptsz)
{
    MUST(cudaMallocAsync_ptsz(&pointer, POOL_BYTES, NULL));
    expect("pool", POOL_BYTES);
}

NEED(runtime_pool)
{
    MUST(cudaMemPoolCreate(&pool, &pool_properties));
}

USE(cudaMallocFromPoolAsync)
{
    MUST(cudaMallocFromPoolAsync(&pointer, POOL_BYTES, pool, NULL));
    expect("pool", POOL_BYTES);
}

USE(cudaMallocFromPoolAsync_ptsz)
{
    MUST(cudaMallocFromPoolAsync_ptsz(&pointer, POOL_BYTES, pool, NULL));
    expect("pool", POOL_BYTES);
}

USE(cudaMemPoolCreate) /* a pool without blocks has reserved nothing */
{
    MUST(cudaMemPoolCreate(&pool, &pool_properties));
    expect("pool", 0);
}

NEED(ipc_handle)
{
    jmsim_foreign_ipc_handle(&ipc, DEVICE_BYTES);
}

USE(cudaIpcOpenMemHandle)
{
    MUST(cudaIpcOpenMemHandle(&pointer, ipc, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    expect("imported", DEVICE_BYTES);
}

USE(cudaImportExternalMemory)
{
    struct cudaExternalMemoryHandleDesc description = {.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
                                                       .handle = {.fd = memory_file(EXTERNAL_SIZE)},
                                                       .size = EXTERNAL_SIZE};
    MUST(cudaImportExternalMemory(&external, &description));
    expect("imported", EXTERNAL_SIZE);
}

NEED(runtime_external)
{
    struct cudaExternalMemoryHandleDesc description = {.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
                                                       .handle = {.fd = memory_file(EXTERNAL_SIZE)},
                                                       .size = EXTERNAL_SIZE};
    MUST(cudaImportExternalMemory(&external, &description));
}

USE(cudaExternalMemoryGetMappedBuffer) /* a view of what was imported, not more of it */
{
    struct cudaExternalMemoryBufferDesc description = {.offset = 0, .size = 4096};
    MUST(cudaExternalMemoryGetMappedBuffer(&pointer, external, &description));
    expect("imported", EXTERNAL_SIZE);
}

/* The driver. */

USE(cuMemAlloc_v2)
{
    MUST(cuMemAlloc_v2(&address, LARGE_BYTES));
    expect("device", LARGE_BYTES);
}

USE(cuMemAllocPitch_v2)
{
    size_t pitch;
    MUST(cuMemAllocPitch_v2(&address, &pitch, WIDTH_BYTES, ROWS, 16));
    expect("device", pitch * ROWS);
}

USE(cuMemAllocManaged)
{
    MUST(cuMemAllocManaged(&address, DEVICE_BYTES, CU_MEM_ATTACH_GLOBAL));
    expect("managed", DEVICE_BYTES);
}

USE(cuMemAllocHost_v2)
{
    MUST(cuMemAllocHost_v2(&pointer, HOST_BYTES));
    expect("pinned", HOST_BYTES);
}

USE(cuMemHostAlloc)
{
    MUST(cuMemHostAlloc(&pointer, HOST_BYTES, 0));
    expect("pinned", HOST_BYTES);
}

USE(cuMemHostRegister)
{
    MUST(cuMemHostRegister(host, sizeof host, 0));
    expect("pinned", 0);
}

USE(cuMemHostRegister_v2)
{
    MUST(cuMemHostRegister_v2(host, sizeof host, 0));
    expect("pinned", 0);
}

USE(cuArrayCreate_v2)
{
    CUDA_ARRAY_DESCRIPTOR shape = {WIDTH, HEIGHT, CU_AD_FORMAT_HALF, 4};
    MUST(cuArrayCreate_v2(&driver_array, &shape));
    expect("array", WIDTH * HEIGHT * 4 * 2);
}

USE(cuArray3DCreate_v2)
{
    CUDA_ARRAY3D_DESCRIPTOR shape = {WIDTH, HEIGHT, DEPTH, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0};
    MUST(cuArray3DCreate_v2(&driver_array, &shape));
    expect("array", WIDTH * HEIGHT * DEPTH);
}

USE(cuMipmappedArrayCreate)
{
    CUDA_ARRAY3D_DESCRIPTOR shape = {WIDTH, HEIGHT, 0, CU_AD_FORMAT_FLOAT, 1, 0};
    MUST(cuMipmappedArrayCreate(&driver_mipmapped, &shape, LEVELS));
    expect("array", MIPMAPPED_ELEMENTS * sizeof(float));
}

USE(cuMemAllocAsync)
{
    MUST(cuMemAllocAsync(&address, POOL_BYTES, NULL));
    expect("pool", POOL_BYTES);
}

USE(cuMemAllocAsync_ptsz)
{
    MUST(cuMemAllocAsync_ptsz(&address, POOL_BYTES, NULL));
    expect("pool", POOL_BYTES);
}

NEED(driver_pool)
{
    MUST(cuMemPoolCreate(&pool, &pool_properties));
}

USE(cuMemAllocFromPoolAsync)
{
    MUST(cuMemAllocFromPoolAsync(&address, POOL_BYTES, pool, NULL));
    expect("pool", POOL_BYTES);
}

USE(cuMemAllocFromPoolAsync_ptsz)
{
    MUST(cuMemAllocFromPoolAsync_ptsz(&address, POOL_BYTES, pool, NULL));
    expect("pool", POOL_BYTES);
}

USE(cuMemPoolCreate)
{
    MUST(cuMemPoolCreate(&pool, &pool_properties));
    expect("pool", 0);
}

USE(cuMemAddressReserve) /* addresses, no memory */
{
    MUST(cuMemAddressReserve(&address, VMM_BYTES, 0, 0, 0));
    expect("vmm", 0);
}

USE(cuMemCreate)
{
    MUST(cuMemCreate(&memory, VMM_BYTES, &vmm_properties, 0));
    expect("vmm", VMM_BYTES);
}

static void reserve(void)
{
    MUST(cuMemAddressReserve(&range, VMM_BYTES, 0, 0, 0));
}

NEED(memory_and_range)
{
    reserve();
    MUST(cuMemCreate(&memory, VMM_BYTES, &vmm_properties, 0));
}

USE(cuMemMap) /* maps memory that was counted when it was created */
{
    MUST(cuMemMap(range, VMM_BYTES, 0, memory, 0));
    expect("vmm", VMM_BYTES);
}

NEED(mapping_alone)
{
    need_memory_and_range();
    MUST(cuMemMap(range, VMM_BYTES, 0, memory, 0));
    MUST(cuMemRelease(memory));
}

USE(cuMemRetainAllocationHandle) /* another handle, the same memory */
{
    MUST(cuMemRetainAllocationHandle(&memory, (void *)(uintptr_t)range));
    expect("vmm", VMM_BYTES);
}

NEED(foreign_memory)
{
    reserve();
}

/* Another process' memory: its size shows when it is mapped. */
USE(cuMemImportFromShareableHandle)
{
    int fd = memory_file(VMM_BYTES);
    MUST(cuMemImportFromShareableHandle(&memory, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    MUST(cuMemMap(range, VMM_BYTES, 0, memory, 0));
    expect("vmm", 0);
    expect("imported", VMM_BYTES);
}

USE(cuIpcOpenMemHandle)
{
    MUST(cuIpcOpenMemHandle(&address, ipc, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    expect("imported", DEVICE_BYTES);
}

USE(cuIpcOpenMemHandle_v2)
{
    MUST(cuIpcOpenMemHandle_v2(&address, ipc, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    expect("imported", DEVICE_BYTES);
}

NEED(driver_external)
{
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC description = {.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
                                                    .handle = {.fd = memory_file(EXTERNAL_SIZE)},
                                                    .size = EXTERNAL_SIZE};
    MUST(cuImportExternalMemory(&external, &description));
}

USE(cuImportExternalMemory)
{
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC description = {.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
                                                    .handle = {.fd = memory_file(EXTERNAL_SIZE)},
                                                    .size = EXTERNAL_SIZE};
    MUST(cuImportExternalMemory(&external, &description));
    expect("imported", EXTERNAL_SIZE);
}

USE(cuExternalMemoryGetMappedBuffer)
{
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC description = {.offset = 4096, .size = 8192};
    MUST(cuExternalMemoryGetMappedBuffer(&address, external, &description));
    expect("imported", EXTERNAL_SIZE);
}

static const struct {
    const char *name;
    void (*need)(void), (*use)(void), (*drop)(void);
} functions[] = {
#define ROW(name, need, drop)                                                                                          \
    {                                                                                                                  \
#name, need, use_##name, drop                                                                                  \
    }
    ROW(cudaMalloc, nothing, drop_cudaFree),
    ROW(cudaMallocPitch, nothing, drop_cudaFree),
    ROW(cudaMalloc3D, nothing, drop_cudaFree),
    ROW(cudaMallocArray, nothing, drop_cudaFreeArray),
    ROW(cudaMalloc3DArray, nothing, drop_cudaFreeArray),
    ROW(cudaMallocMipmappedArray, nothing, drop_cudaFreeMipmappedArray),
    ROW(cudaMallocManaged, nothing, drop_cudaFree),
    ROW(cudaMallocHost, nothing, drop_cudaFreeHost),
    ROW(cudaHostAlloc, nothing, drop_cudaFreeHost),
    ROW(cudaHostRegister, nothing, drop_cudaHostUnregister),
    ROW(cudaMallocAsync, nothing, drop_cudaFreeAsync),
    ROW(cudaMallocAsync_ptsz, nothing, drop_cudaFreeAsync_ptsz),
    ROW(cudaMallocFromPoolAsync, need_runtime_pool, drop_cudaFreeAsync_and_pool),
    ROW(cudaMallocFromPoolAsync_ptsz, need_runtime_pool, drop_cudaFreeAsync_and_pool),
    ROW(cudaMemPoolCreate, nothing, drop_cudaMemPoolDestroy),
    ROW(cudaIpcOpenMemHandle, need_ipc_handle, drop_cudaIpcCloseMemHandle),
    ROW(cudaImportExternalMemory, nothing, drop_cudaDestroyExternalMemory),
    ROW(cudaExternalMemoryGetMappedBuffer, need_runtime_external, drop_cudaFree_and_external),
    ROW(cuMemAlloc_v2, nothing, drop_cuMemFree_v2),
    ROW(cuMemAllocPitch_v2, nothing, drop_cuMemFree_v2),
    ROW(cuMemAllocManaged, nothing, drop_cuMemFree_v2),
    ROW(cuMemAllocHost_v2, nothing, drop_cuMemFreeHost),
    ROW(cuMemHostAlloc, nothing, drop_cuMemFreeHost),
    ROW(cuMemHostRegister, nothing, drop_cuMemHostUnregister),
    ROW(cuMemHostRegister_v2, nothing, drop_cuMemHostUnregister),
    ROW(cuArrayCreate_v2, nothing, drop_cuArrayDestroy),
    ROW(cuArray3DCreate_v2, nothing, drop_cuArrayDestroy),
    ROW(cuMipmappedArrayCreate, nothing, drop_cuMipmappedArrayDestroy),
    ROW(cuMemAllocAsync, nothing, drop_cuMemFreeAsync),
    ROW(cuMemAllocAsync_ptsz, nothing, drop_cuMemFreeAsync_ptsz),
    ROW(cuMemAllocFromPoolAsync, need_driver_pool, drop_cuMemFreeAsync_and_pool),
    ROW(cuMemAllocFromPoolAsync_ptsz, need_driver_pool, drop_cuMemFreeAsync_and_pool),
    ROW(cuMemPoolCreate, nothing, drop_cuMemPoolDestroy),
    ROW(cuMemAddressReserve, nothing, drop_cuMemAddressFree),
    ROW(cuMemCreate, nothing, drop_cuMemRelease),
    ROW(cuMemMap, need_memory_and_range, drop_mapping_and_handle),
    ROW(cuMemRetainAllocationHandle, need_mapping_alone, drop_mapping_and_handle),
    ROW(cuMemImportFromShareableHandle, need_foreign_memory, drop_mapping_and_handle),
    ROW(cuIpcOpenMemHandle, need_ipc_handle, drop_cuIpcCloseMemHandle),
    ROW(cuIpcOpenMemHandle_v2, need_ipc_handle, drop_cuIpcCloseMemHandle),
    ROW(cuImportExternalMemory, nothing, drop_cuDestroyExternalMemory),
    ROW(cuExternalMemoryGetMappedBuffer, need_driver_external, drop_cuMemFree_and_external),
#undef ROW
};

enum { N_FUNCTIONS = sizeof functions / sizeof *functions };

/* The simulation's own figure must agree, or the expectation is wrong. */
static size_t live_bytes(const struct jmsim_stats *now, const char *kind)
{
#define KIND(name)                                                                                                     \
    if (strcmp(kind, #name) == 0)                                                                                      \
        return now->name.bytes;
    KIND(device)
    KIND(array)
    KIND(managed)
    KIND(pinned)
    KIND(pool)
    KIND(vmm)
    KIND(imported)
#undef KIND
    return SIZE_MAX;
}

static void check(int is_freed)
{
    struct jmsim_stats now;
    jmsim_stats(&now);
    for (int k = 0; k < n_expected; k++) {
        size_t bytes = is_freed ? 0 : expected[k].bytes;
        MUST(live_bytes(&now, expected[k].kind) != bytes);
        printf("expect %s %zu\n", expected[k].kind, bytes);
    }
    printf("reserved pool %llu\n", (unsigned long long)now.pool_reserved_bytes);
}

static void use(int i)
{
    n_expected = 0;
    functions[i].need();
    functions[i].use();
}

static void use_and_free(int i)
{
    use(i);
    for (int is_freed = 0; is_freed < 2; is_freed++) {
        if (is_freed)
            functions[i].drop();
        if (jmassif_mark)
            jmassif_mark(functions[i].name);
        printf("point %s\n", functions[i].name);
        check(is_freed);
    }
}

static int is_among(const char *name, char **words)
{
    for (; *words; words++)
        if (strcmp(name, *words) == 0)
            return 1;
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (int i = 0; i < N_FUNCTIONS; i++)
            puts(functions[i].name);
        return 0;
    }
    int in_turn = argc >= 2 && strcmp(argv[1], "--in-turn") == 0, n = 0;
    MUST(cudaFree(NULL)); /* makes the context */
    for (int i = 0; i < N_FUNCTIONS; i++) {
        if (in_turn && (argc == 2 || is_among(functions[i].name, argv + 2))) {
            use_and_free(i);
            n++;
        } else if (argc == 2 && strcmp(functions[i].name, argv[1]) == 0) {
            use(i);
            check(0);
            n++;
        }
    }
    if (n == 0)
        fprintf(stderr, "usage: cuda_each --list | NAME | --in-turn [NAME...]\n");
    return n ? 0 : 2;
}
