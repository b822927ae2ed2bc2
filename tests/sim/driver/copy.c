/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copies and fills. Device memory is memory of this process, so they are memmove and memset behind
 * a check that the device's side lies inside one block, or inside mappings of cuMemCreate's memory
 * that follow one another. */
#include <string.h>

#include "entry.h"

static CUresult on_device(uintptr_t address, size_t bytes)
{
    struct object *context;
    TRY(context_current(&context));
    for (;;) {
        struct object *block = map_within(address);
        size_t offset = block ? address - block->address : 0;
        if (bytes == 0 || (block && offset < block->bytes && bytes <= block->bytes - offset))
            return CUDA_SUCCESS;
        if (!block || block->kind != MAPPING)
            return CUDA_ERROR_INVALID_VALUE;
        bytes -= block->bytes - offset;
        address = block->address + block->bytes;
    }
}

static CUresult to_device(uintptr_t to, const void *from, size_t bytes)
{
    TRY(on_device(to, bytes));
    if (board_has_contents())
        memmove((void *)to, from, bytes);
    return CUDA_SUCCESS;
}

static CUresult to_host(void *to, uintptr_t from, size_t bytes)
{
    TRY(on_device(from, bytes));
    if (board_has_contents())
        memmove(to, (const void *)from, bytes);
    return CUDA_SUCCESS;
}

static CUresult fill(uintptr_t to, unsigned char value, size_t bytes)
{
    TRY(on_device(to, bytes));
    if (board_has_contents())
        memset((void *)to, value, bytes);
    return CUDA_SUCCESS;
}

DRIVER_API(cuMemcpyHtoD_v2, 3020, (CUdeviceptr to, const void *from, size_t bytes), (to, from, bytes))
{
    return to_device(to, from, bytes);
}

DRIVER_API(cuMemcpyHtoD, 2000, (CUdeviceptr_v1 to, const void *from, unsigned int bytes), (to, from, bytes))
{
    return to_device(to, from, bytes);
}

DRIVER_API(cuMemcpyDtoH_v2, 3020, (void *to, CUdeviceptr from, size_t bytes), (to, from, bytes))
{
    return to_host(to, from, bytes);
}

DRIVER_API(cuMemcpyDtoH, 2000, (void *to, CUdeviceptr_v1 from, unsigned int bytes), (to, from, bytes))
{
    return to_host(to, from, bytes);
}

DRIVER_API(cuMemcpyDtoD_v2, 3020, (CUdeviceptr to, CUdeviceptr from, size_t bytes), (to, from, bytes))
{
    TRY(on_device(from, bytes));
    return to_device(to, (const void *)(uintptr_t)from, bytes);
}

DRIVER_API(cuMemcpyDtoD, 2000, (CUdeviceptr_v1 to, CUdeviceptr_v1 from, unsigned int bytes), (to, from, bytes))
{
    TRY(on_device(from, bytes));
    return to_device(to, (const void *)(uintptr_t)from, bytes);
}

DRIVER_API(cuMemsetD8_v2, 3020, (CUdeviceptr to, unsigned char value, size_t bytes), (to, value, bytes))
{
    return fill(to, value, bytes);
}

DRIVER_API(cuMemsetD8, 2000, (CUdeviceptr_v1 to, unsigned char value, unsigned int bytes), (to, value, bytes))
{
    return fill(to, value, bytes);
}

/* With one address space no direction is needed: memory in no block is the program's. */
static CUresult any_to_any(uintptr_t to, uintptr_t from, size_t bytes)
{
    struct object *context;
    TRY(context_current(&context));
    if (map_within(to))
        TRY(on_device(to, bytes));
    if (map_within(from))
        TRY(on_device(from, bytes));
    if (board_has_contents())
        memmove((void *)to, (const void *)from, bytes);
    return CUDA_SUCCESS;
}

DRIVER_API(cuMemcpy, 4000, (CUdeviceptr to, CUdeviceptr from, size_t bytes), (to, from, bytes))
{
    return any_to_any(to, from, bytes);
}

/* Streams have no work left, so what is to happen later happens now. */

DRIVER_API(cuMemcpyHtoDAsync_v2, 3020, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream),
           (to, from, bytes, stream))
{
    TRY(stream_check(stream));
    return to_device(to, from, bytes);
}

DRIVER_API(cuMemcpyDtoHAsync_v2, 3020, (void *to, CUdeviceptr from, size_t bytes, CUstream stream),
           (to, from, bytes, stream))
{
    TRY(stream_check(stream));
    return to_host(to, from, bytes);
}

DRIVER_API(cuMemcpyDtoDAsync_v2, 3020, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),
           (to, from, bytes, stream))
{
    TRY(stream_check(stream));
    return do_cuMemcpyDtoD_v2(to, from, bytes);
}

DRIVER_API(cuMemsetD8Async, 3020, (CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream),
           (to, value, bytes, stream))
{
    TRY(stream_check(stream));
    return fill(to, value, bytes);
}

DRIVER_API(cuMemcpyAsync, 4000, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),
           (to, from, bytes, stream))
{
    TRY(stream_check(stream));
    return any_to_any(to, from, bytes);
}

static CUresult fill_with(CUdeviceptr to, const void *value, size_t size, size_t n)
{
    TRY(on_device(to, n * size));
    for (size_t i = 0; i < n && board_has_contents(); i++)
        memcpy((char *)(uintptr_t)to + i * size, value, size);
    return CUDA_SUCCESS;
}

DRIVER_API(cuMemsetD16_v2, 3020, (CUdeviceptr to, unsigned short value, size_t n), (to, value, n))
{
    return fill_with(to, &value, sizeof value, n);
}

DRIVER_API(cuMemsetD32_v2, 3020, (CUdeviceptr to, unsigned int value, size_t n), (to, value, n))
{
    return fill_with(to, &value, sizeof value, n);
}

DRIVER_API(cuMemsetD16Async, 3020, (CUdeviceptr to, unsigned short value, size_t n, CUstream stream),
           (to, value, n, stream))
{
    TRY(stream_check(stream));
    return do_cuMemsetD16_v2(to, value, n);
}

DRIVER_API(cuMemsetD32Async, 3020, (CUdeviceptr to, unsigned int value, size_t n, CUstream stream),
           (to, value, n, stream))
{
    TRY(stream_check(stream));
    return do_cuMemsetD32_v2(to, value, n);
}

static CUresult fill_rows(CUdeviceptr to, size_t pitch, const void *value, size_t size, size_t width, size_t height)
{
    if (height > 1 && pitch < width * size)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t row = 0; row < height; row++)
        TRY(fill_with(to + row * pitch, value, size, width));
    return CUDA_SUCCESS;
}

DRIVER_API(cuMemsetD2D8_v2, 3020, (CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height),
           (to, pitch, value, width, height))
{
    return fill_rows(to, pitch, &value, sizeof value, width, height);
}

DRIVER_API(cuMemsetD2D8Async, 3020,
           (CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height, CUstream stream),
           (to, pitch, value, width, height, stream))
{
    TRY(stream_check(stream));
    return fill_rows(to, pitch, &value, sizeof value, width, height);
}

DRIVER_API(cuMemsetD2D16_v2, 3020, (CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height),
           (to, pitch, value, width, height))
{
    return fill_rows(to, pitch, &value, sizeof value, width, height);
}

DRIVER_API(cuMemsetD2D16Async, 3020,
           (CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height, CUstream stream),
           (to, pitch, value, width, height, stream))
{
    TRY(stream_check(stream));
    return fill_rows(to, pitch, &value, sizeof value, width, height);
}

DRIVER_API(cuMemsetD2D32_v2, 3020, (CUdeviceptr to, size_t pitch, unsigned int value, size_t width, size_t height),
           (to, pitch, value, width, height))
{
    return fill_rows(to, pitch, &value, sizeof value, width, height);
}

DRIVER_API(cuMemsetD2D32Async, 3020,
           (CUdeviceptr to, size_t pitch, unsigned int value, size_t width, size_t height, CUstream stream),
           (to, pitch, value, width, height, stream))
{
    TRY(stream_check(stream));
    return fill_rows(to, pitch, &value, sizeof value, width, height);
}
