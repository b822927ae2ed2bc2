/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Linear memory, pinned host memory, arrays, copies. Small device blocks come from 2 MiB slabs of
 * the context, which keeps one empty slab for the next; larger ones are taken in 64 KiB pages. */
#include <string.h>

#include "entry.h"

#define SLAB_BYTES        MIB(2)
#define LARGEST_IN_SLAB   MIB(1)
#define BIG_PAGE_BYTES    KIB(64)
#define SMALL_PAGE_BYTES  KIB(4)
#define PITCH_ALIGN_BYTES 512

static struct jmsim_amount *amount_of(enum kind kind)
{
    switch (kind) {
    case DEVICE:
        return &live.device;
    case MANAGED:
        return &live.managed;
    case PINNED:
        return &live.pinned;
    case ARRAY:
    case MIPMAPPED_ARRAY:
        return &live.array;
    default:
        return NULL;
    }
}

static struct object *from_slab(struct object *context, size_t span)
{
    struct object *extent = region_take(context, span);
    if (extent)
        return extent;
    if (!region_new(context, SLAB_BYTES))
        return NULL;
    live.slab_reserved_bytes += SLAB_BYTES;
    return region_take(context, span);
}

/* A block with pages of its own, or (an array, which nobody reads here) with none at all. */
static struct object *from_board(enum kind kind, size_t span, size_t from_board, bool below_4g)
{
    enum backing backing = kind == DEVICE    ? (below_4g ? LOW_PAGES : DEVICE_PAGES)
                           : kind == MANAGED ? MANAGED_PAGES
                           : kind == PINNED  ? HOST_PAGES
                                             : NO_ADDRESS;
    struct object *object = object_new(kind);
    if (object && !board_back(object, from_board, span, backing)) {
        object_delete(object);
        return NULL;
    }
    return object;
}

static CUresult memory_new(enum kind kind, size_t bytes, bool below_4g, struct object **made)
{
    struct object *context, *object;
    TRY(context_current(&context));
    if (bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (kind == DEVICE && bytes <= LARGEST_IN_SLAB && !below_4g) {
        object = from_slab(context, round_up(bytes, GRANULE_BYTES));
    } else {
        size_t span = round_up(bytes, kind == DEVICE ? BIG_PAGE_BYTES : SMALL_PAGE_BYTES);
        bool counts = kind != PINNED || board_integrated();
        object = from_board(kind, span, counts ? span : 0, below_4g);
    }
    if (!object)
        return CUDA_ERROR_OUT_OF_MEMORY;
    object->kind = kind;
    object->context = context;
    object->bytes = bytes;
    if (object->address)
        map_insert(object);
    amount_add(amount_of(kind), bytes);
    *made = object;
    return CUDA_SUCCESS;
}

static void slab_extent_end(struct object *extent)
{
    struct object *context = extent->context;
    struct object *slab = region_give(extent);
    if (!region_idle(slab))
        return;
    for (struct object *other = context->regions; other; other = other->after) {
        if (other != slab && region_idle(other)) {
            region_end(context, slab);
            live.slab_reserved_bytes -= SLAB_BYTES;
            return;
        }
    }
}

void memory_end(struct object *object)
{
    if (object->address)
        map_remove(object);
    if (object->kind != REGISTERED)
        amount_remove(amount_of(object->kind), object->bytes);
    if (object->region) {
        slab_extent_end(object);
        return;
    }
    if (object->kind != REGISTERED)
        board_unback(object);
    object_delete(object);
}

/* Device memory. */

DRIVER_API(cuMemAlloc_v2, 3020, (CUdeviceptr * pointer, size_t bytes), (pointer, bytes))
{
    struct object *block;
    if (!pointer)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(memory_new(DEVICE, bytes, false, &block));
    *pointer = block->address;
    return CUDA_SUCCESS;
}

DRIVER_API(cuMemAlloc, 2000, (CUdeviceptr_v1 * pointer, unsigned int bytes), (pointer, bytes))
{
    struct object *block;
    if (!pointer)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(memory_new(DEVICE, bytes, true, &block));
    *pointer = (CUdeviceptr_v1)block->address;
    return CUDA_SUCCESS;
}

static CUresult pitch_new(size_t width, size_t height, unsigned int element, bool below_4g, size_t *pitch,
                          struct object **block)
{
    size_t bytes;
    struct object *context;
    TRY(context_current(&context));
    if (width == 0 || height == 0 || (element != 4 && element != 8 && element != 16))
        return CUDA_ERROR_INVALID_VALUE;
    *pitch = round_up(width, PITCH_ALIGN_BYTES);
    if (__builtin_mul_overflow(*pitch, height, &bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return memory_new(DEVICE, bytes, below_4g, block);
}

DRIVER_API(cuMemAllocPitch_v2, 3020,
           (CUdeviceptr * pointer, size_t *pitch, size_t width, size_t height, unsigned int element),
           (pointer, pitch, width, height, element))
{
    struct object *block;
    if (!pointer || !pitch)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(pitch_new(width, height, element, false, pitch, &block));
    *pointer = block->address;
    return CUDA_SUCCESS;
}

DRIVER_API(cuMemAllocPitch, 2000,
           (CUdeviceptr_v1 * pointer, unsigned int *pitch, unsigned int width, unsigned int height,
            unsigned int element),
           (pointer, pitch, width, height, element))
{
    struct object *block;
    size_t wide_pitch;
    if (!pointer || !pitch)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(pitch_new(width, height, element, true, &wide_pitch, &block));
    *pointer = (CUdeviceptr_v1)block->address;
    *pitch = (unsigned int)wide_pitch;
    return CUDA_SUCCESS;
}

DRIVER_API(cuMemAllocManaged, 6000, (CUdeviceptr * pointer, size_t bytes, unsigned int flags), (pointer, bytes, flags))
{
    struct object *block;
    if (!pointer || (flags != 1 && flags != 2)) /* CU_MEM_ATTACH_GLOBAL or _HOST */
        return CUDA_ERROR_INVALID_VALUE;
    TRY(memory_new(MANAGED, bytes, false, &block));
    *pointer = block->address;
    return CUDA_SUCCESS;
}

static CUresult linear_free(uintptr_t address)
{
    struct object *context;
    TRY(context_current(&context));
    struct object *block = map_find(address);
    if (!block)
        return CUDA_ERROR_INVALID_VALUE;
    switch (block->kind) {
    case DEVICE:
    case MANAGED:
        memory_end(block);
        return CUDA_SUCCESS;
    case POOL_BLOCK:
        pool_block_end(block);
        return CUDA_SUCCESS;
    case BUFFER:
        sharing_end(block);
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

DRIVER_API(cuMemFree_v2, 3020, (CUdeviceptr pointer), (pointer))
{
    return linear_free(pointer);
}

DRIVER_API(cuMemFree, 2000, (CUdeviceptr_v1 pointer), (pointer))
{
    return linear_free(pointer);
}

static CUresult address_range(uintptr_t address, struct object **block)
{
    struct object *context;
    TRY(context_current(&context));
    *block = map_within(address);
    return *block && (*block)->kind != REGISTERED ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

DRIVER_API(cuMemGetAddressRange_v2, 3020, (CUdeviceptr * base, size_t *bytes, CUdeviceptr pointer),
           (base, bytes, pointer))
{
    struct object *block;
    TRY(address_range(pointer, &block));
    if (base)
        *base = block->address;
    if (bytes)
        *bytes = block->bytes;
    return CUDA_SUCCESS;
}

DRIVER_API(cuMemGetAddressRange, 2000, (CUdeviceptr_v1 * base, unsigned int *bytes, CUdeviceptr_v1 pointer),
           (base, bytes, pointer))
{
    struct object *block;
    TRY(address_range(pointer, &block));
    if (base)
        *base = (CUdeviceptr_v1)block->address;
    if (bytes)
        *bytes = (unsigned int)block->bytes;
    return CUDA_SUCCESS;
}

DRIVER_API(cuPointerGetAttribute, 4000, (void *value, int attribute, CUdeviceptr pointer), (value, attribute, pointer))
{
    struct object *context;
    TRY(context_current(&context));
    struct object *block = map_within(pointer);
    if (!value || attribute != CU_POINTER_ATTRIBUTE_MEMORY_TYPE || !block)
        return CUDA_ERROR_INVALID_VALUE;
    bool host = block->kind == PINNED || block->kind == REGISTERED;
    *(unsigned int *)value = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    return CUDA_SUCCESS;
}

DRIVER_API(cuMemGetInfo_v2, 3020, (size_t * free, size_t *total), (free, total))
{
    struct object *context;
    TRY(context_current(&context));
    if (!free || !total)
        return CUDA_ERROR_INVALID_VALUE;
    *free = nodes_free_bytes(live.board_bytes - live.board_used_bytes, live.board_bytes);
    *total = live.board_bytes;
    return CUDA_SUCCESS;
}

DRIVER_API(cuMemGetInfo, 2000, (unsigned int *free, unsigned int *total), (free, total))
{
    size_t wide_free, wide_total;
    if (!free || !total)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(do_cuMemGetInfo_v2(&wide_free, &wide_total));
    *free = wide_free > UINT32_MAX ? UINT32_MAX : (unsigned int)wide_free;
    *total = wide_total > UINT32_MAX ? UINT32_MAX : (unsigned int)wide_total;
    return CUDA_SUCCESS;
}

/* Pinned host memory. */

DRIVER_API(cuMemHostAlloc, 2020, (void **pointer, size_t bytes, unsigned int flags), (pointer, bytes, flags))
{
    struct object *block;
    if (!pointer || flags > 7) /* PORTABLE, DEVICEMAP, WRITECOMBINED */
        return CUDA_ERROR_INVALID_VALUE;
    TRY(memory_new(PINNED, bytes, false, &block));
    *pointer = (void *)block->address;
    return CUDA_SUCCESS;
}

DRIVER_API(cuMemAllocHost_v2, 3020, (void **pointer, size_t bytes), (pointer, bytes))
{
    return do_cuMemHostAlloc(pointer, bytes, 0);
}

DRIVER_API(cuMemAllocHost, 2000, (void **pointer, unsigned int bytes), (pointer, bytes))
{
    return do_cuMemHostAlloc(pointer, bytes, 0);
}

DRIVER_API(cuMemFreeHost, 2000, (void *pointer), (pointer))
{
    struct object *context;
    TRY(context_current(&context));
    struct object *block = map_find((uintptr_t)pointer);
    if (!block || block->kind != PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    memory_end(block);
    return CUDA_SUCCESS;
}

/* On the device it has the same address. */
DRIVER_API(cuMemHostGetDevicePointer_v2, 3020, (CUdeviceptr * pointer, void *host, unsigned int flags),
           (pointer, host, flags))
{
    TRY(driver_started());
    if (!pointer || flags || !map_within((uintptr_t)host))
        return CUDA_ERROR_INVALID_VALUE;
    *pointer = (uintptr_t)host;
    return CUDA_SUCCESS;
}

DRIVER_API(cuMemHostRegister_v2, 6050, (void *pointer, size_t bytes, unsigned int flags), (pointer, bytes, flags))
{
    struct object *context;
    TRY(context_current(&context));
    if (!pointer || bytes == 0 || flags > 15)
        return CUDA_ERROR_INVALID_VALUE;
    if (map_overlaps((uintptr_t)pointer, bytes))
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    struct object *range = object_new(REGISTERED);
    if (!range)
        return CUDA_ERROR_OUT_OF_MEMORY;
    range->context = context;
    range->address = (uintptr_t)pointer;
    range->bytes = range->span_bytes = bytes;
    map_insert(range);
    return CUDA_SUCCESS;
}

DRIVER_API(cuMemHostRegister, 4000, (void *pointer, size_t bytes, unsigned int flags), (pointer, bytes, flags))
{
    return do_cuMemHostRegister_v2(pointer, bytes, flags);
}

DRIVER_API(cuMemHostUnregister, 4000, (void *pointer), (pointer))
{
    struct object *context;
    TRY(context_current(&context));
    struct object *range = map_find((uintptr_t)pointer);
    if (!pointer)
        return CUDA_ERROR_INVALID_VALUE;
    if (!range || range->kind != REGISTERED)
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    memory_end(range);
    return CUDA_SUCCESS;
}

/* Arrays. */

/* 0: not a format. */
static size_t element_bytes(int format, unsigned int n_channels)
{
    size_t channel = 0;
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
        channel = 1;
        break;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        channel = 2;
        break;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
        channel = 4;
        break;
    }
    return n_channels == 1 || n_channels == 2 || n_channels == 4 ? channel * n_channels : 0;
}

static size_t at_least_one(size_t n)
{
    return n ? n : 1;
}

static bool level_bytes(const CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned int level, size_t *bytes)
{
    size_t width = at_least_one(shape->Width >> level);
    size_t height = at_least_one(shape->Height >> level);
    bool layered = shape->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP); /* layers and faces do not shrink */
    size_t depth = at_least_one(layered ? shape->Depth : shape->Depth >> level);
    *bytes = element_bytes(shape->Format, shape->NumChannels);
    return !__builtin_mul_overflow(*bytes, width, bytes) && !__builtin_mul_overflow(*bytes, height, bytes) &&
           !__builtin_mul_overflow(*bytes, depth, bytes);
}

static CUresult array_new(enum kind kind, void *handle, const CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned int n_levels)
{
    struct object *context, *array;
    size_t bytes = 0;
    TRY(context_current(&context));
    if (!handle || shape->Width == 0 || element_bytes(shape->Format, shape->NumChannels) == 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned int level = 0; level < n_levels; level++) {
        size_t more;
        if (!level_bytes(shape, level, &more) || __builtin_add_overflow(bytes, more, &bytes))
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    TRY(memory_new(kind, bytes, false, &array));
    memcpy(handle, &array, sizeof array);
    return CUDA_SUCCESS;
}

DRIVER_API(cuArray3DCreate_v2, 3020, (CUarray * array, const CUDA_ARRAY3D_DESCRIPTOR *shape), (array, shape))
{
    return shape ? array_new(ARRAY, array, shape, 1) : CUDA_ERROR_INVALID_VALUE;
}

DRIVER_API(cuArray3DCreate, 2000, (CUarray * array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *shape), (array, shape))
{
    if (!shape)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_ARRAY3D_DESCRIPTOR wide = {shape->Width,  shape->Height,      shape->Depth,
                                    shape->Format, shape->NumChannels, shape->Flags};
    return array_new(ARRAY, array, &wide, 1);
}

DRIVER_API(cuArrayCreate_v2, 3020, (CUarray * array, const CUDA_ARRAY_DESCRIPTOR *shape), (array, shape))
{
    if (!shape)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_ARRAY3D_DESCRIPTOR flat = {shape->Width, shape->Height, 0, shape->Format, shape->NumChannels, 0};
    return array_new(ARRAY, array, &flat, 1);
}

DRIVER_API(cuArrayCreate, 2000, (CUarray * array, const CUDA_ARRAY_DESCRIPTOR_v1 *shape), (array, shape))
{
    if (!shape)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_ARRAY3D_DESCRIPTOR flat = {shape->Width, shape->Height, 0, shape->Format, shape->NumChannels, 0};
    return array_new(ARRAY, array, &flat, 1);
}

DRIVER_API(cuMipmappedArrayCreate, 5000,
           (CUmipmappedArray * array, const CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned int n_levels),
           (array, shape, n_levels))
{
    if (!shape)
        return CUDA_ERROR_INVALID_VALUE;
    size_t longest = shape->Width > shape->Height ? shape->Width : shape->Height;
    longest = longest > shape->Depth ? longest : shape->Depth;
    unsigned int most = 1;
    while (longest >>= 1)
        most++;
    n_levels = n_levels < 1 ? 1 : n_levels;
    return array_new(MIPMAPPED_ARRAY, array, shape, n_levels < most ? n_levels : most);
}

static CUresult array_free(const void *handle, enum kind kind)
{
    struct object *context;
    TRY(context_current(&context));
    struct object *array = object_check(handle, kind);
    if (!array)
        return CUDA_ERROR_INVALID_HANDLE;
    memory_end(array);
    return CUDA_SUCCESS;
}

DRIVER_API(cuArrayDestroy, 2000, (CUarray array), (array))
{
    return array_free(array, ARRAY);
}

DRIVER_API(cuMipmappedArrayDestroy, 5000, (CUmipmappedArray array), (array))
{
    return array_free(array, MIPMAPPED_ARRAY);
}
