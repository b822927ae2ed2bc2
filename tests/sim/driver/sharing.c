/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory of others: IPC handles of another process and external memory (a dma-buf, another API's
 * allocation). Nothing of it is taken from the board here. What an IPC handle shows is pages of
 * this process, not the other's: sizes are simulated, sharing is not. External memory is the file
 * behind the descriptor. */
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "entry.h"

static const char MAGIC[8] = "jmsimip";

struct ipc_handle {
    char magic[8];
    uint64_t pid, address, bytes;
};

void sharing_end(struct object *object)
{
    switch (object->kind) {
    case IPC:
        map_remove(object);
        pages_unmap(object->address, object->span_bytes);
        amount_remove(&live.imported, object->bytes);
        break;
    case BUFFER:
        map_remove(object);
        munmap((void *)object->address, object->span_bytes);
        break;
    case EXTERNAL:
        if (object->u.in_external.fd >= 0)
            close(object->u.in_external.fd);
        amount_remove(&live.imported, object->bytes);
        break;
    default:
        break;
    }
    object_delete(object);
}

/* IPC. */

static void ipc_handle_fill(CUipcMemHandle *handle, uint64_t pid, uint64_t address, uint64_t bytes)
{
    struct ipc_handle inside = {.pid = pid, .address = address, .bytes = bytes};
    memcpy(inside.magic, MAGIC, sizeof MAGIC);
    memset(handle, 0, sizeof *handle);
    memcpy(handle, &inside, sizeof inside);
}

EXPORT void jmsim_foreign_ipc_handle(CUipcMemHandle *handle, size_t bytes)
{
    static uint64_t n_made;
    ipc_handle_fill(handle, (uint64_t)getpid() + 1, __atomic_add_fetch(&n_made, 1, __ATOMIC_RELAXED), bytes);
}

DRIVER_API(cuIpcGetMemHandle, 4010, (CUipcMemHandle * handle, CUdeviceptr pointer), (handle, pointer))
{
    struct object *context;
    TRY(context_current(&context));
    struct object *block = map_within(pointer);
    if (!handle || !block || block->kind != DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    ipc_handle_fill(handle, (uint64_t)getpid(), block->address, block->bytes);
    return CUDA_SUCCESS;
}

static struct object *ipc_opened(const struct ipc_handle *handle, struct object *context)
{
    for (size_t i = 0; i < object_count(); i++) {
        struct object *opened = object_slot(i);
        if (opened->kind == IPC && opened->context == context && opened->u.in_ipc.pid == handle->pid &&
            opened->u.in_ipc.address == handle->address)
            return opened;
    }
    return NULL;
}

DRIVER_API(cuIpcOpenMemHandle_v2, 11000, (CUdeviceptr * pointer, CUipcMemHandle handle, unsigned int flags),
           (pointer, handle, flags))
{
    struct object *context;
    struct ipc_handle inside;
    TRY(context_current(&context));
    memcpy(&inside, &handle, sizeof inside);
    if (!pointer || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
        return CUDA_ERROR_INVALID_VALUE;
    if (memcmp(inside.magic, MAGIC, sizeof MAGIC) != 0 || inside.bytes == 0)
        return CUDA_ERROR_INVALID_HANDLE;
    if (inside.pid == (uint64_t)getpid()) /* a process cannot open its own */
        return CUDA_ERROR_INVALID_CONTEXT;
    struct object *opened = ipc_opened(&inside, context);
    if (!opened) {
        size_t span = round_up(inside.bytes, KIB(4));
        uintptr_t address = pages_map(span, false);
        opened = address ? object_new(IPC) : NULL;
        if (!opened)
            return CUDA_ERROR_OUT_OF_MEMORY;
        opened->context = context;
        opened->address = address;
        opened->bytes = inside.bytes;
        opened->span_bytes = span;
        opened->u.in_ipc.pid = inside.pid;
        opened->u.in_ipc.address = inside.address;
        map_insert(opened);
        amount_add(&live.imported, opened->bytes);
    }
    opened->n_references++;
    *pointer = opened->address;
    return CUDA_SUCCESS;
}

DRIVER_API(cuIpcOpenMemHandle, 4010, (CUdeviceptr * pointer, CUipcMemHandle handle, unsigned int flags),
           (pointer, handle, flags))
{
    return do_cuIpcOpenMemHandle_v2(pointer, handle, flags);
}

DRIVER_API(cuIpcCloseMemHandle, 4010, (CUdeviceptr pointer), (pointer))
{
    struct object *context;
    TRY(context_current(&context));
    struct object *opened = map_find(pointer);
    if (!opened || opened->kind != IPC)
        return CUDA_ERROR_INVALID_VALUE;
    if (--opened->n_references == 0)
        sharing_end(opened);
    return CUDA_SUCCESS;
}

/* External memory. */

static bool is_descriptor(int fd)
{
    struct stat file;
    return fstat(fd, &file) == 0;
}

DRIVER_API(cuImportExternalMemory, 10000,
           (CUexternalMemory * handle, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *description), (handle, description))
{
    struct object *context;
    TRY(context_current(&context));
    if (!handle || !description || description->size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    bool by_fd = description->type == CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
    if (by_fd ? !is_descriptor(description->handle.fd)
              : description->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_NVSCIBUF || !description->handle.nvSciBufObject)
        return CUDA_ERROR_INVALID_VALUE;
    struct object *external = object_new(EXTERNAL);
    if (!external)
        return CUDA_ERROR_OUT_OF_MEMORY;
    external->context = context;
    external->bytes = description->size;
    external->u.in_external.fd = by_fd ? description->handle.fd : -1; /* ours from now on */
    amount_add(&live.imported, external->bytes);
    *handle = (CUexternalMemory)external;
    return CUDA_SUCCESS;
}

DRIVER_API(cuExternalMemoryGetMappedBuffer, 10000,
           (CUdeviceptr * pointer, CUexternalMemory handle, const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *description),
           (pointer, handle, description))
{
    struct object *context;
    TRY(context_current(&context));
    struct object *external = object_check(handle, EXTERNAL);
    if (!external)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!pointer || !description || description->size == 0 || description->offset % KIB(4) != 0 ||
        description->offset > external->bytes || description->size > external->bytes - description->offset)
        return CUDA_ERROR_INVALID_VALUE;
    int fd = external->u.in_external.fd;
    size_t span = round_up(description->size, KIB(4));
    void *at = mmap(NULL, span, PROT_READ | PROT_WRITE, fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd,
                    fd < 0 ? 0 : (off_t)description->offset);
    if (at == MAP_FAILED)
        return CUDA_ERROR_INVALID_VALUE;
    struct object *buffer = object_new(BUFFER);
    if (!buffer) {
        munmap(at, span);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    buffer->context = context;
    buffer->address = (uintptr_t)at;
    buffer->bytes = description->size;
    buffer->span_bytes = span;
    map_insert(buffer);
    *pointer = buffer->address;
    return CUDA_SUCCESS;
}

DRIVER_API(cuDestroyExternalMemory, 10000, (CUexternalMemory handle), (handle))
{
    TRY(driver_started());
    struct object *external = object_check(handle, EXTERNAL);
    if (!external)
        return CUDA_ERROR_INVALID_HANDLE;
    sharing_end(external);
    return CUDA_SUCCESS;
}
