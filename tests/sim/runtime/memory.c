/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The simulated CUDA runtime's memory functions. Each calls the driver function that the real one
 * calls; where the runtime promises something else than the driver (no bytes are a null pointer, a
 * null pointer may be freed), it is promised here. */
#include <string.h>

#include "runtime.h"

/* Linear memory. */

/* Enters, and answers what needs no driver call. */
static int nothing_to_take(void **pointer, size_t bytes, cudaError_t *error)
{
    *error = runtime_enter();
    if (*error == CUDA_SUCCESS && !pointer)
        *error = CUDA_ERROR_INVALID_VALUE;
    if (*error == CUDA_SUCCESS && bytes == 0)
        *pointer = NULL;
    return *error != CUDA_SUCCESS || bytes == 0;
}

static cudaError_t as_pointer(cudaError_t error, CUdeviceptr from, void **to)
{
    if (error == CUDA_SUCCESS)
        *to = (void *)(uintptr_t)from;
    return runtime_leave(error);
}

RUNTIME_API cudaError_t cudaMalloc(void **pointer, size_t bytes)
{
    cudaError_t error;
    CUdeviceptr block;
    if (nothing_to_take(pointer, bytes, &error))
        return runtime_leave(error);
    error = driver.cuMemAlloc_v2(&block, bytes);
    return as_pointer(error, block, pointer);
}

static cudaError_t pitch_new(void **pointer, size_t *pitch, size_t width, size_t height)
{
    cudaError_t error = runtime_enter();
    CUdeviceptr block = 0;
    if (error == CUDA_SUCCESS && (!pointer || !pitch))
        error = CUDA_ERROR_INVALID_VALUE;
    if (error == CUDA_SUCCESS && (width == 0 || height == 0))
        *pitch = 0;
    else if (error == CUDA_SUCCESS)
        error = driver.cuMemAllocPitch_v2(&block, pitch, width, height, 4);
    return as_pointer(error, block, pointer);
}

RUNTIME_API cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height)
{
    return pitch_new(pointer, pitch, width, height);
}

RUNTIME_API cudaError_t cudaMalloc3D(struct cudaPitchedPtr *pointer, struct cudaExtent extent)
{
    size_t rows;
    if (!pointer || __builtin_mul_overflow(extent.height, extent.depth, &rows))
        return runtime_leave(CUDA_ERROR_INVALID_VALUE);
    pointer->xsize = extent.width;
    pointer->ysize = extent.height;
    return pitch_new(&pointer->ptr, &pointer->pitch, extent.width, rows);
}

RUNTIME_API cudaError_t cudaMallocManaged(void **pointer, size_t bytes, unsigned int flags)
{
    CUdeviceptr block = 0;
    cudaError_t error = runtime_enter();
    if (error == CUDA_SUCCESS && !pointer)
        error = CUDA_ERROR_INVALID_VALUE;
    if (error == CUDA_SUCCESS)
        error = driver.cuMemAllocManaged(&block, bytes, flags);
    return as_pointer(error, block, pointer);
}

RUNTIME_API cudaError_t cudaFree(void *pointer)
{
    cudaError_t error = runtime_enter(); /* cudaFree(0) is how programs make the context */
    if (error == CUDA_SUCCESS && pointer)
        error = driver.cuMemFree_v2((uintptr_t)pointer);
    return runtime_leave(error);
}

RUNTIME_API cudaError_t cudaMemGetInfo(size_t *free, size_t *total)
{
    ENTER_AND_CALL(driver.cuMemGetInfo_v2(free, total));
}

/* Pinned host memory. */

RUNTIME_API cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned int flags)
{
    cudaError_t error;
    if (nothing_to_take(pointer, bytes, &error))
        return runtime_leave(error);
    return runtime_leave(driver.cuMemHostAlloc(pointer, bytes, flags));
}

RUNTIME_API cudaError_t cudaMallocHost(void **pointer, size_t bytes)
{
    cudaError_t error;
    if (nothing_to_take(pointer, bytes, &error))
        return runtime_leave(error);
    return runtime_leave(driver.cuMemHostAlloc(pointer, bytes, 0));
}

RUNTIME_API cudaError_t cudaFreeHost(void *pointer)
{
    cudaError_t error = runtime_enter();
    if (error == CUDA_SUCCESS && pointer)
        error = driver.cuMemFreeHost(pointer);
    return runtime_leave(error);
}

RUNTIME_API cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned int flags)
{
    ENTER_AND_CALL(driver.cuMemHostRegister_v2(pointer, bytes, flags));
}

RUNTIME_API cudaError_t cudaHostUnregister(void *pointer)
{
    ENTER_AND_CALL(driver.cuMemHostUnregister(pointer));
}

/* Arrays. */

/* 0: no such format. */
static int driver_format(int bits, int kind)
{
    switch (bits) {
    case 8:
        return kind == cudaChannelFormatKindSigned     ? CU_AD_FORMAT_SIGNED_INT8
               : kind == cudaChannelFormatKindUnsigned ? CU_AD_FORMAT_UNSIGNED_INT8
                                                       : 0;
    case 16:
        return kind == cudaChannelFormatKindSigned     ? CU_AD_FORMAT_SIGNED_INT16
               : kind == cudaChannelFormatKindUnsigned ? CU_AD_FORMAT_UNSIGNED_INT16
                                                       : CU_AD_FORMAT_HALF;
    case 32:
        return kind == cudaChannelFormatKindSigned     ? CU_AD_FORMAT_SIGNED_INT32
               : kind == cudaChannelFormatKindUnsigned ? CU_AD_FORMAT_UNSIGNED_INT32
                                                       : CU_AD_FORMAT_FLOAT;
    default:
        return 0;
    }
}

static cudaError_t array_shape(const struct cudaChannelFormatDesc *format, struct cudaExtent extent, unsigned int flags,
                               CUDA_ARRAY3D_DESCRIPTOR *shape)
{
    if (!format || format->f < 0 || format->f > cudaChannelFormatKindFloat)
        return CUDA_ERROR_INVALID_CHANNEL_DESCRIPTOR;
    unsigned int n_channels = !!format->x + !!format->y + !!format->z + !!format->w;
    shape->Width = extent.width;
    shape->Height = extent.height;
    shape->Depth = extent.depth;
    shape->Format = driver_format(format->x, format->f);
    shape->NumChannels = n_channels;
    shape->Flags = flags;
    return shape->Format ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CHANNEL_DESCRIPTOR;
}

static cudaError_t array_new(cudaArray_t *array, const struct cudaChannelFormatDesc *format, struct cudaExtent extent,
                             unsigned int flags)
{
    CUDA_ARRAY3D_DESCRIPTOR shape;
    CUarray made;
    cudaError_t error = runtime_enter();
    if (error == CUDA_SUCCESS && !array)
        error = CUDA_ERROR_INVALID_VALUE;
    if (error == CUDA_SUCCESS)
        error = array_shape(format, extent, flags, &shape);
    if (error == CUDA_SUCCESS)
        error = driver.cuArray3DCreate_v2(&made, &shape);
    if (error == CUDA_SUCCESS)
        *array = (cudaArray_t)made;
    return runtime_leave(error);
}

RUNTIME_API cudaError_t cudaMalloc3DArray(cudaArray_t *array, const struct cudaChannelFormatDesc *format,
                                          struct cudaExtent extent, unsigned int flags)
{
    return array_new(array, format, extent, flags);
}

RUNTIME_API cudaError_t cudaMallocArray(cudaArray_t *array, const struct cudaChannelFormatDesc *format, size_t width,
                                        size_t height, unsigned int flags)
{
    return array_new(array, format, (struct cudaExtent){width, height, 0}, flags);
}

RUNTIME_API cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t *array,
                                                 const struct cudaChannelFormatDesc *format, struct cudaExtent extent,
                                                 unsigned int n_levels, unsigned int flags)
{
    CUDA_ARRAY3D_DESCRIPTOR shape;
    CUmipmappedArray made;
    cudaError_t error = runtime_enter();
    if (error == CUDA_SUCCESS && !array)
        error = CUDA_ERROR_INVALID_VALUE;
    if (error == CUDA_SUCCESS)
        error = array_shape(format, extent, flags, &shape);
    if (error == CUDA_SUCCESS)
        error = driver.cuMipmappedArrayCreate(&made, &shape, n_levels);
    if (error == CUDA_SUCCESS)
        *array = (cudaMipmappedArray_t)made;
    return runtime_leave(error);
}

RUNTIME_API cudaError_t cudaFreeArray(cudaArray_t array)
{
    cudaError_t error = runtime_enter();
    if (error == CUDA_SUCCESS && array)
        error = driver.cuArrayDestroy((CUarray)array);
    return runtime_leave(error);
}

RUNTIME_API cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t array)
{
    cudaError_t error = runtime_enter();
    if (error == CUDA_SUCCESS && array)
        error = driver.cuMipmappedArrayDestroy((CUmipmappedArray)array);
    return runtime_leave(error);
}

/* The stream-ordered allocator. */

#define MALLOC_ASYNC(name, driver_call)                                                                                \
    RUNTIME_API cudaError_t name(void **pointer, size_t bytes, cudaStream_t stream)                                    \
    {                                                                                                                  \
        cudaError_t error;                                                                                             \
        CUdeviceptr block;                                                                                             \
        if (nothing_to_take(pointer, bytes, &error))                                                                   \
            return runtime_leave(error);                                                                               \
        error = driver.driver_call(&block, bytes, stream);                                                             \
        return as_pointer(error, block, pointer);                                                                      \
    }

#define MALLOC_FROM_POOL(name, driver_call)                                                                            \
    RUNTIME_API cudaError_t name(void **pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream)                \
    {                                                                                                                  \
        cudaError_t error;                                                                                             \
        CUdeviceptr block;                                                                                             \
        if (nothing_to_take(pointer, bytes, &error))                                                                   \
            return runtime_leave(error);                                                                               \
        error = driver.driver_call(&block, bytes, pool, stream);                                                       \
        return as_pointer(error, block, pointer);                                                                      \
    }

#define FREE_ASYNC(name, driver_call)                                                                                  \
    RUNTIME_API cudaError_t name(void *pointer, cudaStream_t stream)                                                   \
    {                                                                                                                  \
        cudaError_t error = runtime_enter();                                                                           \
        if (error == CUDA_SUCCESS && pointer)                                                                          \
            error = driver.driver_call((uintptr_t)pointer, stream);                                                    \
        return runtime_leave(error);                                                                                   \
    }

MALLOC_ASYNC(cudaMallocAsync, cuMemAllocAsync)
MALLOC_ASYNC(cudaMallocAsync_ptsz, cuMemAllocAsync_ptsz)
MALLOC_FROM_POOL(cudaMallocFromPoolAsync, cuMemAllocFromPoolAsync)
MALLOC_FROM_POOL(cudaMallocFromPoolAsync_ptsz, cuMemAllocFromPoolAsync_ptsz)
FREE_ASYNC(cudaFreeAsync, cuMemFreeAsync)
FREE_ASYNC(cudaFreeAsync_ptsz, cuMemFreeAsync_ptsz)

RUNTIME_API cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const CUmemPoolProps *properties)
{
    ENTER_AND_CALL(driver.cuMemPoolCreate(pool, properties));
}

RUNTIME_API cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool)
{
    ENTER_AND_CALL(driver.cuMemPoolDestroy(pool));
}

RUNTIME_API cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes_to_keep)
{
    ENTER_AND_CALL(driver.cuMemPoolTrimTo(pool, bytes_to_keep));
}

RUNTIME_API cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, int attribute, void *value)
{
    ENTER_AND_CALL(driver.cuMemPoolGetAttribute(pool, attribute, value));
}

RUNTIME_API cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, int attribute, void *value)
{
    ENTER_AND_CALL(driver.cuMemPoolSetAttribute(pool, attribute, value));
}

RUNTIME_API cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
    ENTER_AND_CALL(driver.cuDeviceGetDefaultMemPool(pool, device));
}

RUNTIME_API cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device)
{
    ENTER_AND_CALL(driver.cuDeviceGetMemPool(pool, device));
}

RUNTIME_API cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool)
{
    ENTER_AND_CALL(driver.cuDeviceSetMemPool(device, pool));
}

/* Memory of others. */

RUNTIME_API cudaError_t cudaIpcGetMemHandle(CUipcMemHandle *handle, void *pointer)
{
    ENTER_AND_CALL(driver.cuIpcGetMemHandle(handle, (uintptr_t)pointer));
}

RUNTIME_API cudaError_t cudaIpcOpenMemHandle(void **pointer, CUipcMemHandle handle, unsigned int flags)
{
    CUdeviceptr block = 0;
    cudaError_t error = runtime_enter();
    if (error == CUDA_SUCCESS && !pointer)
        error = CUDA_ERROR_INVALID_VALUE;
    if (error == CUDA_SUCCESS)
        error = driver.cuIpcOpenMemHandle_v2(&block, handle, flags);
    return as_pointer(error, block, pointer);
}

RUNTIME_API cudaError_t cudaIpcCloseMemHandle(void *pointer)
{
    ENTER_AND_CALL(driver.cuIpcCloseMemHandle((uintptr_t)pointer));
}

RUNTIME_API cudaError_t cudaImportExternalMemory(cudaExternalMemory_t *memory,
                                                 const struct cudaExternalMemoryHandleDesc *from)
{
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC to = {0};
    cudaError_t error = runtime_enter();
    if (error != CUDA_SUCCESS || !from)
        return runtime_leave(error != CUDA_SUCCESS ? error : CUDA_ERROR_INVALID_VALUE);
    to.type = from->type;
    memcpy(&to.handle, &from->handle, sizeof to.handle);
    to.size = from->size;
    to.flags = from->flags;
    return runtime_leave(driver.cuImportExternalMemory(memory, &to));
}

RUNTIME_API cudaError_t cudaExternalMemoryGetMappedBuffer(void **pointer, cudaExternalMemory_t memory,
                                                          const struct cudaExternalMemoryBufferDesc *from)
{
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC to = {0};
    CUdeviceptr block = 0;
    cudaError_t error = runtime_enter();
    if (error == CUDA_SUCCESS && (!pointer || !from))
        error = CUDA_ERROR_INVALID_VALUE;
    if (error == CUDA_SUCCESS) {
        to.offset = from->offset;
        to.size = from->size;
        to.flags = from->flags;
        error = driver.cuExternalMemoryGetMappedBuffer(&block, memory, &to);
    }
    return as_pointer(error, block, pointer);
}

RUNTIME_API cudaError_t cudaDestroyExternalMemory(cudaExternalMemory_t memory)
{
    ENTER_AND_CALL(driver.cuDestroyExternalMemory(memory));
}

/* Copies. With one address space, cudaMemcpyDefault need not ask which side is which. */

RUNTIME_API cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, int direction)
{
    cudaError_t error = runtime_enter();
    if (error != CUDA_SUCCESS)
        return runtime_leave(error);
    switch (direction) {
    case cudaMemcpyHostToDevice:
        return runtime_leave(driver.cuMemcpyHtoD_v2((uintptr_t)to, from, bytes));
    case cudaMemcpyDeviceToHost:
        return runtime_leave(driver.cuMemcpyDtoH_v2(to, (uintptr_t)from, bytes));
    case cudaMemcpyDeviceToDevice:
        return runtime_leave(driver.cuMemcpyDtoD_v2((uintptr_t)to, (uintptr_t)from, bytes));
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
        memmove(to, from, bytes);
        return CUDA_SUCCESS;
    default:
        return runtime_leave(CUDA_ERROR_INVALID_VALUE);
    }
}

RUNTIME_API cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, int direction, cudaStream_t stream)
{
    (void)stream;
    return cudaMemcpy(to, from, bytes, direction);
}

RUNTIME_API cudaError_t cudaMemset(void *to, int value, size_t bytes)
{
    ENTER_AND_CALL(driver.cuMemsetD8_v2((uintptr_t)to, (unsigned char)value, bytes));
}

RUNTIME_API cudaError_t cudaMemset2D(void *to, size_t pitch, int value, size_t width, size_t height)
{
    ENTER_AND_CALL(driver.cuMemsetD2D8_v2((uintptr_t)to, pitch, (unsigned char)value, width, height));
}

RUNTIME_API cudaError_t cudaMemset3D(struct cudaPitchedPtr to, int value, struct cudaExtent extent)
{
    cudaError_t error = CUDA_SUCCESS;
    for (size_t layer = 0; layer < extent.depth && error == CUDA_SUCCESS; layer++)
        error =
            cudaMemset2D((char *)to.ptr + layer * to.pitch * to.ysize, to.pitch, value, extent.width, extent.height);
    return error;
}

RUNTIME_API cudaError_t cudaMemset2DAsync(void *to, size_t pitch, int value, size_t width, size_t height,
                                          cudaStream_t stream)
{
    (void)stream;
    return cudaMemset2D(to, pitch, value, width, height);
}

RUNTIME_API cudaError_t cudaMemset3DAsync(struct cudaPitchedPtr to, int value, struct cudaExtent extent,
                                          cudaStream_t stream)
{
    (void)stream;
    return cudaMemset3D(to, value, extent);
}
