/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Virtual memory management: memory without an address (cuMemCreate), addresses without memory
 * (cuMemAddressReserve), and mappings of one at the other. The memory is a memfd, so that two
 * mappings of it, or a handle exported and imported again, show the same bytes. It lives until its
 * last handle and its last mapping are gone. Imported memory was taken from the board by whoever
 * exported it: here only its mappings are listed. */
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "entry.h"

#define GRANULARITY MIB(2)

static bool aligned(uint64_t n)
{
    return n % GRANULARITY == 0;
}

static struct object *memory_check(CUmemGenericAllocationHandle handle)
{
    struct object *memory = object_check((const void *)(uintptr_t)handle, MEMORY);
    return memory && memory->n_references > 0 ? memory : NULL;
}

static void memory_end_if_unused(struct object *memory)
{
    if (memory->n_references > 0 || memory->u.in_memory.n_mappings > 0)
        return;
    if (!memory->u.in_memory.imported)
        amount_remove(&live.vmm, memory->bytes);
    close(memory->u.in_memory.fd);
    board_unback(memory);
    object_delete(memory);
}

static CUresult properties_check(const CUmemAllocationProp *properties)
{
    if (!properties || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
        properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    return device_check(properties->location.id);
}

DRIVER_API(cuMemGetAllocationGranularity, 10020,
           (size_t * granularity, const CUmemAllocationProp *properties, int option), (granularity, properties, option))
{
    TRY(driver_started());
    TRY(properties_check(properties));
    if (!granularity || option < 0 || option > 1)
        return CUDA_ERROR_INVALID_VALUE;
    *granularity = GRANULARITY;
    return CUDA_SUCCESS;
}

/* The system call, for C libraries older than its wrapper. */
static int memory_file(size_t bytes)
{
    int fd = (int)syscall(SYS_memfd_create, "jmsim", 1u /* MFD_CLOEXEC */);
    if (fd >= 0 && ftruncate(fd, (off_t)bytes) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static struct object *memory_new(size_t bytes, bool imported, CUmemGenericAllocationHandle *handle)
{
    struct object *memory = object_new(MEMORY);
    if (!memory)
        return NULL;
    memory->n_references = 1;
    memory->bytes = bytes;
    memory->u.in_memory.imported = imported;
    *handle = (uintptr_t)memory;
    return memory;
}

DRIVER_API(cuMemCreate, 10020,
           (CUmemGenericAllocationHandle * handle, size_t bytes, const CUmemAllocationProp *properties,
            unsigned long long flags),
           (handle, bytes, properties, flags))
{
    TRY(driver_started());
    TRY(properties_check(properties));
    if (!handle || bytes == 0 || !aligned(bytes) || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    struct object *memory = memory_new(bytes, false, handle);
    if (!memory)
        return CUDA_ERROR_OUT_OF_MEMORY;
    bool backed = board_back(memory, bytes, bytes, NO_ADDRESS);
    int fd = !backed ? -1 : nodes_there() ? nodes_file(memory) : memory_file(bytes);
    if (fd < 0) {
        if (backed)
            board_unback(memory);
        object_delete(memory);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memory->u.in_memory.fd = fd;
    memory->u.in_memory.handle_types = properties->requestedHandleTypes;
    amount_add(&live.vmm, bytes);
    return CUDA_SUCCESS;
}

DRIVER_API(cuMemRelease, 10020, (CUmemGenericAllocationHandle handle), (handle))
{
    TRY(driver_started());
    struct object *memory = memory_check(handle);
    if (!memory)
        return CUDA_ERROR_INVALID_VALUE;
    memory->n_references--;
    memory_end_if_unused(memory);
    return CUDA_SUCCESS;
}

DRIVER_API(cuMemRetainAllocationHandle, 11000, (CUmemGenericAllocationHandle * handle, void *address),
           (handle, address))
{
    TRY(driver_started());
    struct object *mapping = map_within((uintptr_t)address);
    if (!handle || !mapping || mapping->kind != MAPPING)
        return CUDA_ERROR_INVALID_VALUE;
    struct object *memory = mapping->u.in_mapping.memory;
    memory->n_references++;
    *handle = (uintptr_t)memory;
    return CUDA_SUCCESS;
}

DRIVER_API(cuMemExportToShareableHandle, 10020,
           (void *shareable, CUmemGenericAllocationHandle handle, int type, unsigned long long flags),
           (shareable, handle, type, flags))
{
    TRY(driver_started());
    struct object *memory = memory_check(handle);
    if (!shareable || !memory || flags != 0 || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        !(memory->u.in_memory.handle_types & type))
        return CUDA_ERROR_INVALID_VALUE;
    int fd = dup(memory->u.in_memory.fd);
    if (fd < 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *(int *)shareable = fd;
    return CUDA_SUCCESS;
}

/* The file descriptor stands in for the handle: it is passed as a pointer, and stays the caller's. */
DRIVER_API(cuMemImportFromShareableHandle, 10020, (CUmemGenericAllocationHandle * handle, void *shareable, int type),
           (handle, shareable, type))
{
    struct stat file;
    TRY(driver_started());
    int fd = (int)(intptr_t)shareable;
    if (!handle || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || fstat(fd, &file) != 0 || file.st_size <= 0 ||
        !aligned((uint64_t)file.st_size))
        return CUDA_ERROR_INVALID_VALUE;
    int own_fd = dup(fd);
    struct object *memory = own_fd >= 0 ? memory_new((size_t)file.st_size, true, handle) : NULL;
    if (!memory) {
        if (own_fd >= 0)
            close(own_fd);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memory->u.in_memory.fd = own_fd;
    return CUDA_SUCCESS;
}

/* Addresses. */

static struct object *reservation_around(uintptr_t address, size_t bytes)
{
    for (size_t i = 0; i < object_count(); i++) {
        struct object *range = object_slot(i);
        if (range->kind == RESERVATION && bytes <= range->bytes && address - range->address <= range->bytes - bytes)
            return range;
    }
    return NULL;
}

static void *map_nothing(uintptr_t address, size_t bytes, int fixed)
{
    return mmap((void *)address, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, 0);
}

DRIVER_API(cuMemAddressReserve, 10020,
           (CUdeviceptr * pointer, size_t bytes, size_t alignment, CUdeviceptr wanted, unsigned long long flags),
           (pointer, bytes, alignment, wanted, flags))
{
    TRY(driver_started());
    if (!pointer || bytes == 0 || !aligned(bytes) || (alignment & (alignment - 1)) != 0 || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    size_t align = alignment > GRANULARITY ? alignment : GRANULARITY;
    /* Map more than wanted and give back what lies outside the aligned part. */
    char *raw = map_nothing(wanted, bytes + align, 0);
    if (raw == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    uintptr_t start = round_up((uintptr_t)raw, align);
    if (start > (uintptr_t)raw)
        munmap(raw, start - (uintptr_t)raw);
    munmap((void *)(start + bytes), (uintptr_t)raw + align - start);
    struct object *range = object_new(RESERVATION);
    if (!range) {
        munmap((void *)start, bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    range->address = start;
    range->bytes = bytes;
    *pointer = start;
    return CUDA_SUCCESS;
}

DRIVER_API(cuMemAddressFree, 10020, (CUdeviceptr pointer, size_t bytes), (pointer, bytes))
{
    TRY(driver_started());
    struct object *range = reservation_around(pointer, bytes);
    if (!range || range->address != pointer || range->bytes != bytes || map_overlaps(pointer, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    munmap((void *)range->address, range->bytes);
    object_delete(range);
    return CUDA_SUCCESS;
}

/* Mappings. */

DRIVER_API(cuMemMap, 10020,
           (CUdeviceptr pointer, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
            unsigned long long flags),
           (pointer, bytes, offset, handle, flags))
{
    TRY(driver_started());
    struct object *memory = memory_check(handle);
    if (!memory || bytes == 0 || !aligned(pointer) || !aligned(bytes) || !aligned(offset) || flags != 0 ||
        offset > memory->bytes || bytes > memory->bytes - offset || !reservation_around(pointer, bytes) ||
        map_overlaps(pointer, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    struct object *mapping = object_new(MAPPING);
    if (!mapping)
        return CUDA_ERROR_OUT_OF_MEMORY;
    int fd = memory->u.in_memory.fd;
    if (mmap((void *)(uintptr_t)pointer, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, fd, (off_t)offset) == MAP_FAILED ||
        (nodes_there() && !nodes_map(memory, fd, pointer, bytes, offset))) {
        map_nothing(pointer, bytes, MAP_FIXED);
        object_delete(mapping);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    mapping->address = pointer;
    mapping->bytes = mapping->span_bytes = bytes;
    mapping->u.in_mapping.memory = memory;
    map_insert(mapping);
    memory->u.in_memory.n_mappings++;
    if (memory->u.in_memory.imported)
        amount_add(&live.imported, bytes);
    return CUDA_SUCCESS;
}

/* Whether the range is made of whole mappings, one after the other. */
static bool whole_mappings(uintptr_t address, size_t bytes)
{
    uintptr_t at = address;
    while (at - address < bytes) {
        struct object *mapping = map_find(at);
        if (!mapping || mapping->kind != MAPPING)
            return false;
        at += mapping->bytes;
    }
    return at - address == bytes && bytes > 0;
}

static void mapping_end(struct object *mapping)
{
    struct object *memory = mapping->u.in_mapping.memory;
    if (nodes_there())
        nodes_unmap(mapping->address, mapping->bytes);
    map_nothing(mapping->address, mapping->bytes, MAP_FIXED);
    map_remove(mapping);
    memory->u.in_memory.n_mappings--;
    if (memory->u.in_memory.imported)
        amount_remove(&live.imported, mapping->bytes);
    object_delete(mapping);
    memory_end_if_unused(memory);
}

DRIVER_API(cuMemUnmap, 10020, (CUdeviceptr pointer, size_t bytes), (pointer, bytes))
{
    TRY(driver_started());
    if (!whole_mappings(pointer, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t done = 0; done < bytes;) {
        struct object *mapping = map_find(pointer + done);
        done += mapping->bytes;
        mapping_end(mapping);
    }
    return CUDA_SUCCESS;
}

DRIVER_API(cuMemSetAccess, 10020, (CUdeviceptr pointer, size_t bytes, const CUmemAccessDesc *access, size_t n_access),
           (pointer, bytes, access, n_access))
{
    TRY(driver_started());
    if (!whole_mappings(pointer, bytes) || !access || n_access != 1 ||
        access->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(device_check(access->location.id));
    int protection = access->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? PROT_READ | PROT_WRITE
                     : access->flags == CU_MEM_ACCESS_FLAGS_PROT_READ    ? PROT_READ
                                                                         : PROT_NONE;
    return mprotect((void *)(uintptr_t)pointer, bytes, protection) == 0 ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}
