/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CUDA's memory in all ways that the simulation knows. A slot holds one thing, with the context that it ends with; what
 * ends otherwise than by its own free (a context, a reset of the device) is struck off. Calls may fail: what they
 * returned is part of the result. */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <valgrind/valgrind.h>

#include "cuda_abi.h"
#include "jmassif.h"
#include "jmsim.h"
#include "sequences.h"

#define MIB(n) ((size_t)(n) << 20)

enum { N_THINGS = 40, N_CONTEXTS = 4, N_POOLS = 3, N_STREAMS = 4, RANGE = 4, PIECE = 2 << 20 };

enum what {
    NOTHING,
    DEVICE,
    MANAGED,
    PINNED,
    REGISTERED,
    ARRAY,
    MIPMAPPED,
    POOLED,
    CREATED,
    RANGED,
    IMPORTED,
    EXTERNAL
};

struct thing {
    enum what what;
    int context; /* -1: the device's */
    CUdeviceptr address;
    size_t bytes;
    void *handle;
    bool mapped[RANGE]; /* of a range: its pieces */
};

static struct thing things[N_THINGS];
static CUcontext contexts[N_CONTEXTS];
static CUmemoryPool pools[N_POOLS];
static CUstream streams[N_STREAMS];
static int stream_context[N_STREAMS];
static int current = -1;
static bool has_imported_handles;

static const CUmemPoolProps pool_properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                               .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
static const CUmemAllocationProp memory_properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                                      .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};

static bool told(struct walker *w, int code)
{
    found(w, (uint64_t)code);
    return code == 0;
}

static size_t some_size(struct walker *w)
{
    return 1 + chance(w, (uint64_t)1 << (6 + chance(w, 18)));
}

static CUstream some_stream(struct walker *w)
{
    int i = (int)chance(w, N_STREAMS);
    return streams[i] && stream_context[i] == current ? streams[i] : NULL;
}

static struct thing *some(struct walker *w, enum what what)
{
    for (unsigned i = 0, at = (unsigned)chance(w, N_THINGS); i < N_THINGS; i++)
        if (things[(at + i) % N_THINGS].what == what)
            return &things[(at + i) % N_THINGS];
    return NULL;
}

static struct thing *begin(struct thing *t, enum what what, CUdeviceptr address, void *handle, size_t bytes)
{
    *t = (struct thing){.what = what, .context = current, .address = address, .handle = handle, .bytes = bytes};
    return t;
}

/* ---- one way each to make something ---- */

static NOINLINE void make_device(struct walker *w, struct thing *t)
{
    CUdeviceptr address = 0;
    void *pointer = NULL;
    size_t bytes = some_size(w), pitch;
    switch (chance(w, 4)) {
    case 0:
        if (told(w, cuMemAlloc_v2(&address, bytes)))
            begin(t, DEVICE, address, NULL, bytes);
        break;
    case 1:
        if (told(w, cudaMalloc(&pointer, bytes)))
            begin(t, DEVICE, (CUdeviceptr)(uintptr_t)pointer, NULL, bytes);
        break;
    case 2:
        if (told(w, cuMemAllocPitch_v2(&address, &pitch, 1 + bytes % 1000, 1 + bytes % 77, 4)))
            begin(t, DEVICE, address, NULL, pitch * (1 + bytes % 77));
        break;
    default:
        if (told(w, cudaMallocManaged(&pointer, bytes, CU_MEM_ATTACH_GLOBAL)))
            begin(t, MANAGED, (CUdeviceptr)(uintptr_t)pointer, NULL, bytes);
    }
}

static char registered[N_THINGS][2 * 4096] __attribute__((aligned(4096)));

static NOINLINE void make_pinned(struct walker *w, struct thing *t)
{
    void *pointer;
    size_t bytes = some_size(w);
    switch (chance(w, 3)) {
    case 0:
        if (told(w, cudaMallocHost(&pointer, bytes)))
            begin(t, PINNED, 0, pointer, bytes);
        break;
    case 1:
        if (told(w, cuMemHostAlloc(&pointer, bytes, 0)))
            begin(t, PINNED, 0, pointer, bytes);
        break;
    default:
        if (told(w, cuMemHostRegister_v2(registered[t - things], sizeof registered[0], 0)))
            begin(t, REGISTERED, 0, registered[t - things], 0);
    }
}

static NOINLINE void make_array(struct walker *w, struct thing *t)
{
    CUarray array;
    CUmipmappedArray levels;
    size_t side = 1 + chance(w, 200);
    CUDA_ARRAY_DESCRIPTOR flat = {side, 1 + side % 60, CU_AD_FORMAT_FLOAT, 2};
    CUDA_ARRAY3D_DESCRIPTOR deep = {side, 1 + side % 60, 1 + side % 5, CU_AD_FORMAT_HALF, 4, 0};
    switch (chance(w, 3)) {
    case 0:
        if (told(w, cuArrayCreate_v2(&array, &flat)))
            begin(t, ARRAY, 0, array, 0);
        break;
    case 1:
        if (told(w, cuArray3DCreate_v2(&array, &deep)))
            begin(t, ARRAY, 0, array, 0);
        break;
    default:
        if (told(w, cuMipmappedArrayCreate(&levels, &deep, 1 + (unsigned)chance(w, 3))))
            begin(t, MIPMAPPED, 0, levels, 0);
    }
}

static NOINLINE void make_pooled(struct walker *w, struct thing *t)
{
    CUmemoryPool pool = pools[chance(w, N_POOLS)];
    CUdeviceptr address;
    size_t bytes = some_size(w);
    CUstream stream = some_stream(w);
    int code = pool ? cuMemAllocFromPoolAsync(&address, bytes, pool, stream) : cuMemAllocAsync(&address, bytes, stream);
    if (told(w, code))
        begin(t, POOLED, address, NULL, bytes)->context = -1;
}

static NOINLINE void make_virtual(struct walker *w, struct thing *t)
{
    CUmemGenericAllocationHandle memory;
    CUdeviceptr range;
    size_t bytes = PIECE * (1 + chance(w, 2));
    if (chance(w, 2)) {
        if (told(w, cuMemCreate(&memory, bytes, &memory_properties, 0)))
            begin(t, CREATED, 0, (void *)(uintptr_t)memory, bytes)->context = -1;
    } else if (told(w, cuMemAddressReserve(&range, RANGE * PIECE, 0, 0, 0))) {
        begin(t, RANGED, range, NULL, RANGE * PIECE)->context = -1;
    }
}

static NOINLINE void make_imported(struct walker *w, struct thing *t)
{
    static CUipcMemHandle handle;
    CUdeviceptr address;
    if (chance(w, 2)) {
        size_t bytes = some_size(w);
        if (chance(w, 2))
            jmsim_foreign_ipc_handle(&handle, bytes); /* else the one before, again */
        if (told(w, cuIpcOpenMemHandle_v2(&address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)))
            begin(t, IMPORTED, address, NULL, 0);
        return;
    }
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC description = {.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
                                                    .size = 4096 * (1 + chance(w, 40))};
    CUexternalMemory memory;
    int fd = description.handle.fd = memfd_create("sequences", MFD_CLOEXEC);
    MUST(fd >= 0 && ftruncate(fd, (off_t)description.size) == 0);
    if (told(w, cuImportExternalMemory(&memory, &description))) {
        begin(t, EXTERNAL, 0, memory, description.size);
        CUDA_EXTERNAL_MEMORY_BUFFER_DESC part = {.offset = 0, .size = 4096};
        if (chance(w, 2))
            told(w, cuExternalMemoryGetMappedBuffer(&t->address, memory, &part));
    } else {
        close(fd);
    }
}

/* ---- and to end it ---- */

static void unmap_piece(struct walker *w, struct thing *range, unsigned i)
{
    if (told(w, cuMemUnmap(range->address + i * PIECE, PIECE)))
        range->mapped[i] = false;
}

static bool end_one(struct walker *w, struct thing *t)
{
    void *pointer = (void *)(uintptr_t)t->address;
    switch (t->what) {
    case DEVICE:
    case MANAGED:
        return told(w, chance(w, 2) ? cuMemFree_v2(t->address) : cudaFree(pointer));
    case PINNED:
        return told(w, chance(w, 2) ? cuMemFreeHost(t->handle) : cudaFreeHost(t->handle));
    case REGISTERED:
        return told(w, cuMemHostUnregister(t->handle));
    case ARRAY:
        return told(w, cuArrayDestroy(t->handle));
    case MIPMAPPED:
        return told(w, cuMipmappedArrayDestroy(t->handle));
    case POOLED:
        return told(w, chance(w, 3) ? cuMemFreeAsync(t->address, some_stream(w)) : cuMemFree_v2(t->address));
    case CREATED:
        return told(w, cuMemRelease((CUmemGenericAllocationHandle)(uintptr_t)t->handle));
    case RANGED:
        for (unsigned i = 0; i < RANGE; i++)
            if (t->mapped[i])
                unmap_piece(w, t, i);
        return told(w, cuMemAddressFree(t->address, t->bytes));
    case IMPORTED:
        return told(w, cuIpcCloseMemHandle(t->address));
    case EXTERNAL:
        if (t->address && told(w, cuMemFree_v2(t->address)))
            t->address = 0;
        return told(w, cuDestroyExternalMemory(t->handle));
    default:
        return true;
    }
}

static NOINLINE void end(struct walker *w, struct thing *t)
{
    if (end_one(w, t))
        t->what = NOTHING;
}

static NOINLINE void make(struct walker *w, struct thing *t)
{
    static void (*const ways[])(struct walker *, struct thing *) = {make_device,  make_device,  make_pinned,
                                                                    make_array,   make_pooled,  make_pooled,
                                                                    make_virtual, make_virtual, make_imported};
    ways[chance(w, sizeof ways / sizeof *ways)](w, t);
}

/* ---- what happens between ---- */

/* Memory is mapped into a part of a range, unmapped, or gets another handle. */
static NOINLINE void map_some(struct walker *w)
{
    struct thing *range = some(w, RANGED), *memory = some(w, CREATED);
    if (!range || !memory)
        return;
    unsigned i = (unsigned)chance(w, RANGE);
    CUdeviceptr at = range->address + i * PIECE;
    if (range->mapped[i]) {
        CUmemGenericAllocationHandle again;
        struct thing *t = some(w, NOTHING);
        if (t && chance(w, 4) == 0) {
            if (told(w, cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(at + 4096))))
                begin(t, CREATED, 0, (void *)(uintptr_t)again, PIECE)->context = -1;
        } else {
            unmap_piece(w, range, i);
        }
    } else if (told(w, cuMemMap(at, PIECE, 0, (CUmemGenericAllocationHandle)(uintptr_t)memory->handle, 0))) {
        CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        range->mapped[i] = true;
        if (chance(w, 2))
            told(w, cuMemSetAccess(at, PIECE, &access, 1));
    }
}

static NOINLINE void export_and_import(struct walker *w)
{
    struct thing *memory = some(w, CREATED), *t = some(w, NOTHING);
    CUmemGenericAllocationHandle imported;
    int fd = -1;
    if (!memory || !t ||
        !told(w, cuMemExportToShareableHandle(&fd, (CUmemGenericAllocationHandle)(uintptr_t)memory->handle,
                                              CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0)))
        return;
    if (told(w, cuMemImportFromShareableHandle(&imported, (void *)(uintptr_t)fd,
                                               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)))
        begin(t, CREATED, 0, (void *)(uintptr_t)imported, memory->bytes)->context = -1;
    has_imported_handles = true;
    close(fd);
}

static NOINLINE void change_pools(struct walker *w)
{
    CUmemoryPool *pool = &pools[chance(w, N_POOLS)];
    uint64_t threshold = chance(w, 2) ? UINT64_MAX : MIB(chance(w, 64));
    switch (chance(w, 5)) {
    case 0:
        if (!*pool && !told(w, cuMemPoolCreate(pool, &pool_properties)))
            *pool = NULL;
        break;
    case 1:
        if (*pool && told(w, cuMemPoolDestroy(*pool)))
            *pool = NULL;
        break;
    case 2:
        if (*pool)
            told(w, cuMemPoolSetAttribute(*pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
        break;
    case 3:
        if (*pool)
            told(w, cuMemPoolTrimTo(*pool, MIB(chance(w, 40))));
        break;
    default:
        told(w, chance(w, 2) ? cuCtxSynchronize() : cudaDeviceSynchronize());
    }
}

static NOINLINE void change_streams(struct walker *w)
{
    int i = (int)chance(w, N_STREAMS);
    if (streams[i] && stream_context[i] == current) {
        if (chance(w, 2))
            told(w, cuStreamSynchronize(streams[i]));
        else if (told(w, cuStreamDestroy_v2(streams[i])))
            streams[i] = NULL;
    } else if (!streams[i] && told(w, cuStreamCreate(&streams[i], 0))) {
        stream_context[i] = current;
    }
}

/* What a context takes along. */
static void forget(int context)
{
    for (struct thing *t = things; t < things + N_THINGS; t++)
        if (t->context == context)
            t->what = NOTHING;
    for (int i = 0; i < N_STREAMS; i++)
        if (streams[i] && stream_context[i] == context)
            streams[i] = NULL;
}

static NOINLINE void change_contexts(struct walker *w)
{
    int i = 1 + (int)chance(w, N_CONTEXTS - 1);
    if (!contexts[i]) {
        if (told(w, cuCtxCreate_v2(&contexts[i], 0, 0)))
            current = i;
    } else if (chance(w, 2)) {
        if (told(w, cuCtxSetCurrent(contexts[i])))
            current = i;
    } else if (told(w, cuCtxDestroy_v2(contexts[i]))) {
        contexts[i] = NULL;
        forget(i);
        current = 0;
        told(w, cuCtxSetCurrent(contexts[0]));
    }
}

/* Parts of blocks are tensors, some of them where none can be. */
static NOINLINE void hand_out(struct walker *w)
{
    struct thing *t = some(w, chance(w, 4) ? DEVICE : PINNED);
    if (!t)
        return;
    CUdeviceptr at = (t->handle ? (CUdeviceptr)(uintptr_t)t->handle : t->address) + chance(w, t->bytes + 64);
    if (chance(w, 3))
        JMASSIF_TENSOR(at, 1 + chance(w, t->bytes));
    else
        JMASSIF_TENSOR_FREED(at);
}

static NOINLINE void in_vain(struct walker *w)
{
    static char ours[64];
    void *pointer;
    CUdeviceptr address;
    struct thing *t = some(w, DEVICE);
    switch (chance(w, 6)) {
    case 0:
        told(w, cudaFree(ours));
        break;
    case 1:
        told(w, cudaFree(NULL));
        break;
    case 2:
        if (t)
            told(w, cuMemFree_v2(t->address + 1024 * 1024 * 64));
        break;
    case 3:
        told(w, cudaMalloc(&pointer, (size_t)1 << 50));
        break;
    case 4:
        told(w, cuMemAlloc_v2(&address, 0));
        break;
    default:
        told(w, cuMemFreeHost(ours));
    }
}

static void start(struct walker *w)
{
    MUST(cuInit(0) == 0);
    MUST(cuDevicePrimaryCtxRetain(&contexts[0], 0) == 0);
    MUST(cuCtxSetCurrent(contexts[0]) == 0);
    current = 0;
    found(w, 0);
}

void cuda_step(struct walker *w)
{
    if (current < 0)
        start(w);
    uint64_t what = chance(w, 32);
    struct thing *t = &things[chance(w, N_THINGS)];
    if (what < 5)
        map_some(w);
    else if (what < 6)
        export_and_import(w);
    else if (what < 9)
        change_pools(w);
    else if (what < 10)
        change_streams(w);
    else if (what < 11)
        change_contexts(w);
    else if (what < 13)
        hand_out(w);
    else if (what < 14)
        in_vain(w);
    else if (t->what == NOTHING)
        make(w, t);
    else if (t->context < 0 || t->context == current)
        end(w, t);
}

/* A block with tensors in it counts as several, and a buffer of imported memory as one without bytes. Of imported
 * handles the simulation counts mappings, a profile the memory. */
size_t cuda_tell(char *text, size_t size)
{
    struct jmsim_stats now;
    jmsim_stats(&now);
#define AMOUNT(kind) (unsigned long long)now.kind.bytes, (unsigned long long)now.kind.blocks
    int n = snprintf(text, size, " device %llu - pinned %llu - array %llu %llu managed %llu %llu",
                     (unsigned long long)now.device.bytes, (unsigned long long)now.pinned.bytes, AMOUNT(array),
                     AMOUNT(managed));
    if (!has_imported_handles)
        n += snprintf(text + n, size - (size_t)n, " imported %llu -", (unsigned long long)now.imported.bytes);
    n += snprintf(text + n, size - (size_t)n, " vmm %llu %llu pool %llu %llu", AMOUNT(vmm),
                  (unsigned long long)now.pool_reserved_bytes, (unsigned long long)now.pool.blocks);
#undef AMOUNT
    return (size_t)n;
}
