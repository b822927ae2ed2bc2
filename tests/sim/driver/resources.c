/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Streams, events, modules and libraries: things a program makes for other reasons than memory, and
 * which cost memory all the same. Images are not read: a module costs what costs.h says, at once or, with
 * CUDA_MODULE_LOADING=LAZY, when a kernel of it is first needed. */
#include <string.h>
#include <unistd.h>

#include "entry.h"

CUresult resource_new(enum kind kind, size_t device_bytes, unsigned heap_blocks, void *handle)
{
    struct object *context;
    TRY(context_current(&context));
    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    struct object *made = object_new(kind);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (device_bytes && !board_back(made, device_bytes, device_bytes, NO_ADDRESS)) {
        object_delete(made);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made->context = context;
    made->cost = cost_take(heap_blocks, jmsim_count_heap);
    live.context_device_bytes += device_bytes;
    memcpy(handle, &made, sizeof made);
    return CUDA_SUCCESS;
}

void resource_end(struct object *resource)
{
    live.context_device_bytes -= resource->board_bytes;
    board_unback(resource);
    cost_give(resource->cost, jmsim_count_heap);
    object_delete(resource);
}

static CUresult resource_free(const void *handle, enum kind kind)
{
    TRY(driver_started());
    struct object *resource = object_check(handle, kind);
    if (!resource)
        return CUDA_ERROR_INVALID_HANDLE;
    resource_end(resource);
    return CUDA_SUCCESS;
}

/* Streams. The default ones are NULL, 1 (legacy) and 2 (per thread). */

CUresult stream_check(CUstream stream)
{
    struct object *context;
    if ((uintptr_t)stream <= 2)
        return context_current(&context);
    TRY(driver_started());
    return object_check(stream, STREAM) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

DRIVER_API(cuStreamCreateWithPriority, 5050, (CUstream * stream, unsigned int flags, int priority),
           (stream, flags, priority))
{
    (void)priority;
    if (flags > 1)
        return CUDA_ERROR_INVALID_VALUE;
    return resource_new(STREAM, STREAM_DEVICE_BYTES, STREAM_HEAP_BLOCKS, stream);
}

DRIVER_API(cuStreamCreate, 2000, (CUstream * stream, unsigned int flags), (stream, flags))
{
    return do_cuStreamCreateWithPriority(stream, flags, 0);
}

DRIVER_API(cuStreamDestroy_v2, 4000, (CUstream stream), (stream))
{
    return resource_free(stream, STREAM);
}

DRIVER_API(cuStreamDestroy, 2000, (CUstream stream), (stream))
{
    return resource_free(stream, STREAM);
}

DRIVER_API(cuStreamSynchronize, 2000, (CUstream stream), (stream))
{
    TRY(stream_check(stream));
    pools_release_idle();
    return CUDA_SUCCESS;
}

DRIVER_API(cuStreamSynchronize_ptsz, 7000, (CUstream stream), (stream))
{
    return do_cuStreamSynchronize(stream);
}

/* Events. */

DRIVER_API(cuEventCreate, 2000, (CUevent * event, unsigned int flags), (event, flags))
{
    if (flags > 7)
        return CUDA_ERROR_INVALID_VALUE;
    return resource_new(EVENT, EVENT_DEVICE_BYTES, EVENT_HEAP_BLOCKS, event);
}

DRIVER_API(cuEventDestroy_v2, 4000, (CUevent event), (event))
{
    return resource_free(event, EVENT);
}

DRIVER_API(cuEventDestroy, 2000, (CUevent event), (event))
{
    return resource_free(event, EVENT);
}

DRIVER_API(cuEventSynchronize, 2000, (CUevent event), (event))
{
    TRY(driver_started());
    if (!object_check(event, EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    pools_release_idle();
    return CUDA_SUCCESS;
}

/* Modules and libraries. */

static CUresult module_new(const void *image, void *handle)
{
    if (!image)
        return CUDA_ERROR_INVALID_VALUE;
    const char *loading = getenv("CUDA_MODULE_LOADING");
    bool is_lazy = loading && strcmp(loading, "LAZY") == 0;
    return resource_new(MODULE, is_lazy ? 0 : MODULE_DEVICE_BYTES, MODULE_HEAP_BLOCKS, handle);
}

CUresult code_load(struct object *resource, size_t bytes)
{
    if (resource->board_bytes)
        return CUDA_SUCCESS;
    if (!board_back(resource, bytes, bytes, NO_ADDRESS))
        return CUDA_ERROR_OUT_OF_MEMORY;
    live.context_device_bytes += bytes;
    return CUDA_SUCCESS;
}

static CUresult module_from_file(const char *path, void *handle)
{
    struct object *context;
    TRY(context_current(&context));
    if (path && access(path, R_OK) != 0)
        return CUDA_ERROR_FILE_NOT_FOUND;
    return module_new(path, handle);
}

DRIVER_API(cuModuleLoad, 2000, (CUmodule * module, const char *path), (module, path))
{
    return module_from_file(path, module);
}

DRIVER_API(cuModuleLoadData, 2000, (CUmodule * module, const void *image), (module, image))
{
    return module_new(image, module);
}

DRIVER_API(cuModuleLoadDataEx, 2010,
           (CUmodule * module, const void *image, unsigned int n_options, int *options, void **values),
           (module, image, n_options, options, values))
{
    (void)n_options, (void)options, (void)values;
    return module_new(image, module);
}

DRIVER_API(cuModuleLoadFatBinary, 2000, (CUmodule * module, const void *image), (module, image))
{
    return module_new(image, module);
}

DRIVER_API(cuModuleUnload, 2000, (CUmodule module), (module))
{
    return resource_free(module, MODULE);
}

DRIVER_API(cuLibraryLoadData, 12000,
           (CUlibrary * library, const void *code, int *jit_options, void **jit_values, unsigned int n_jit,
            int *options, void **values, unsigned int n_options),
           (library, code, jit_options, jit_values, n_jit, options, values, n_options))
{
    (void)jit_options, (void)jit_values, (void)n_jit, (void)options, (void)values, (void)n_options;
    return module_new(code, library);
}

DRIVER_API(cuLibraryLoadFromFile, 12000,
           (CUlibrary * library, const char *path, int *jit_options, void **jit_values, unsigned int n_jit,
            int *options, void **values, unsigned int n_options),
           (library, path, jit_options, jit_values, n_jit, options, values, n_options))
{
    (void)jit_options, (void)jit_values, (void)n_jit, (void)options, (void)values, (void)n_options;
    return module_from_file(path, library);
}

DRIVER_API(cuLibraryUnload, 12000, (CUlibrary library), (library))
{
    return resource_free(library, MODULE);
}
