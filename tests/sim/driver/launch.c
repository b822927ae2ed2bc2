/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Kernels, and what clients of the driver API ask about the device, their context and their events before they launch
 * any. A launch loads its kernel's code and is over at once. Linking makes an image that a module can be loaded from. A
 * function is the module that it is in: nothing is read of either. */
#include <string.h>

#include "../unknown.h"
#include "entry.h"

enum { MAX_THREADS = 1024, ATTRIBUTE_MAX_THREADS = 0 };

static CUresult function_check(CUfunction function)
{
    TRY(driver_started());
    return object_check(function, MODULE) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

DRIVER_API(cuModuleGetFunction, 2000, (CUfunction * function, CUmodule module, const char *name),
           (function, module, name))
{
    TRY(driver_started());
    if (!function || !name || !object_check(module, MODULE))
        return CUDA_ERROR_INVALID_VALUE;
    *function = (CUfunction)module;
    return CUDA_SUCCESS;
}

DRIVER_API(cuFuncGetAttribute, 2020, (int *value, int attribute, CUfunction function), (value, attribute, function))
{
    TRY(function_check(function));
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    *value = attribute == ATTRIBUTE_MAX_THREADS ? MAX_THREADS : 0;
    return CUDA_SUCCESS;
}

DRIVER_API(cuFuncSetCacheConfig, 3000, (CUfunction function, int config), (function, config))
{
    (void)config;
    return function_check(function);
}

DRIVER_API(cuLaunchKernel, 4000,
           (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x,
            unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, CUstream stream, void **parameters,
            void **extra),
           (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, parameters, extra))
{
    (void)shared_bytes, (void)parameters, (void)extra;
    TRY(function_check(function));
    if (!grid_x || !grid_y || !grid_z || !block_x || !block_y || !block_z)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(stream_check(stream));
    return code_load((struct object *)function, MODULE_DEVICE_BYTES);
}

DRIVER_API(cuLaunchKernelEx, 11060, (const void *configuration, CUfunction function, void **parameters, void **extra),
           (configuration, function, parameters, extra))
{
    (void)parameters, (void)extra;
    TRY(function_check(function));
    return configuration ? code_load((struct object *)function, MODULE_DEVICE_BYTES) : CUDA_ERROR_INVALID_VALUE;
}

/* Launches as before CUDA 4: parameters are set one by one. */

DRIVER_API(cuFuncSetAttribute, 9000, (CUfunction function, int attribute, int value), (function, attribute, value))
{
    (void)attribute, (void)value;
    return function_check(function);
}

DRIVER_API(cuFuncSetBlockShape, 2000, (CUfunction function, int x, int y, int z), (function, x, y, z))
{
    TRY(function_check(function));
    return x > 0 && y > 0 && z > 0 && x <= MAX_THREADS ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

DRIVER_API(cuParamSetSize, 2000, (CUfunction function, unsigned int bytes), (function, bytes))
{
    (void)bytes;
    return function_check(function);
}

DRIVER_API(cuParamSetv, 2000, (CUfunction function, int offset, void *value, unsigned int bytes),
           (function, offset, value, bytes))
{
    (void)bytes;
    TRY(function_check(function));
    return offset >= 0 && value ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

DRIVER_API(cuLaunchGridAsync, 2000, (CUfunction function, int width, int height, CUstream stream),
           (function, width, height, stream))
{
    if (width < 1 || height < 1)
        return CUDA_ERROR_INVALID_VALUE;
    return do_cuLaunchKernel(function, (unsigned int)width, (unsigned int)height, 1, 1, 1, 1, 0, stream, NULL, NULL);
}

/* A library's kernel, and its module, are the library. */

static CUresult library_part(void *part, void *library)
{
    TRY(driver_started());
    if (!part || !object_check(library, MODULE))
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(part, &library, sizeof library);
    return CUDA_SUCCESS;
}

DRIVER_API(cuLibraryGetKernel, 12000, (CUkernel * kernel, CUlibrary library, const char *name), (kernel, library, name))
{
    return name ? library_part(kernel, library) : CUDA_ERROR_INVALID_VALUE;
}

DRIVER_API(cuKernelGetFunction, 12000, (CUfunction * function, CUkernel kernel), (function, kernel))
{
    TRY(library_part(function, kernel));
    return code_load((struct object *)kernel, MODULE_DEVICE_BYTES);
}

DRIVER_API(cuLibraryGetModule, 12000, (CUmodule * module, CUlibrary library), (module, library))
{
    TRY(library_part(module, library));
    return code_load((struct object *)library, MODULE_DEVICE_BYTES);
}

/* Graphs of one kernel. Instantiation loads its code, and the first upload or launch makes the commands. */

static CUresult graph_new(struct object *module, void *handle)
{
    struct object *made;
    TRY(resource_new(GRAPH, 0, 1, &made));
    made->u.in_graph.module = module;
    memcpy(handle, &made, sizeof made);
    return CUDA_SUCCESS;
}

DRIVER_API(cuGraphCreate, 10000, (CUgraph * graph, unsigned int flags), (graph, flags))
{
    return flags || !graph ? CUDA_ERROR_INVALID_VALUE : graph_new(NULL, graph);
}

/* Only the first member of the parameters is read. */
DRIVER_API(cuGraphAddKernelNode_v2, 12000,
           (void **node, CUgraph graph, const void **after, size_t n_after, const CUfunction *parameters),
           (node, graph, after, n_after, parameters))
{
    struct object *to = object_check(graph, GRAPH);
    if (!node || !to || n_after || after || !parameters)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(function_check(*parameters));
    *node = to->u.in_graph.module = (struct object *)*parameters;
    return CUDA_SUCCESS;
}

DRIVER_API(cuGraphInstantiateWithFlags, 11040, (CUgraphExec * executable, CUgraph graph, unsigned long long flags),
           (executable, graph, flags))
{
    struct object *from = object_check(graph, GRAPH);
    if (!executable || !from || !from->u.in_graph.module || flags)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(code_load(from->u.in_graph.module, MODULE_DEVICE_BYTES));
    return graph_new(from->u.in_graph.module, executable);
}

DRIVER_API(cuGraphUpload, 11010, (CUgraphExec executable, CUstream stream), (executable, stream))
{
    struct object *graph = object_check(executable, GRAPH);
    TRY(stream_check(stream));
    return graph ? code_load(graph, STREAM_DEVICE_BYTES) : CUDA_ERROR_INVALID_VALUE;
}

DRIVER_API(cuGraphLaunch, 10000, (CUgraphExec executable, CUstream stream), (executable, stream))
{
    return do_cuGraphUpload(executable, stream);
}

/* Both are no more than their kernel. */
DRIVER_API(cuGraphExecUpdate_v2, 12000, (CUgraphExec executable, CUgraph graph, int *outcome),
           (executable, graph, outcome))
{
    struct object *to = object_check(executable, GRAPH), *from = object_check(graph, GRAPH);
    if (!to || !from || !outcome)
        return CUDA_ERROR_INVALID_VALUE;
    to->u.in_graph.module = from->u.in_graph.module;
    *outcome = 0; /* CU_GRAPH_EXEC_UPDATE_SUCCESS */
    return CUDA_SUCCESS;
}

static CUresult graph_free(const void *handle)
{
    struct object *graph = object_check(handle, GRAPH);
    if (!graph)
        return CUDA_ERROR_INVALID_VALUE;
    resource_end(graph);
    return CUDA_SUCCESS;
}

DRIVER_API(cuGraphDestroy, 10000, (CUgraph graph), (graph))
{
    return graph_free(graph);
}

DRIVER_API(cuGraphExecDestroy, 10000, (CUgraphExec executable), (executable))
{
    return graph_free(executable);
}

DRIVER_API(cuOccupancyMaxPotentialBlockSize, 6050,
           (int *n_blocks, int *block_size, CUfunction function, size_t (*shared_bytes_for)(int), size_t shared_bytes,
            int limit),
           (n_blocks, block_size, function, shared_bytes_for, shared_bytes, limit))
{
    (void)shared_bytes_for, (void)shared_bytes;
    TRY(function_check(function));
    if (!n_blocks || !block_size)
        return CUDA_ERROR_INVALID_VALUE;
    *n_blocks = 1;
    *block_size = limit > 0 && limit < MAX_THREADS ? limit : MAX_THREADS;
    return CUDA_SUCCESS;
}

/* Linking. */

static char image[] = "an image";

DRIVER_API(cuLinkCreate_v2, 6050, (unsigned int n_options, int *options, void **values, CUlinkState *link),
           (n_options, options, values, link))
{
    struct object *context;
    (void)n_options, (void)options, (void)values;
    TRY(context_current(&context));
    if (!link)
        return CUDA_ERROR_INVALID_VALUE;
    *link = (CUlinkState)image;
    return CUDA_SUCCESS;
}

DRIVER_API(cuLinkAddData_v2, 6050,
           (CUlinkState link, int type, void *data, size_t bytes, const char *name, unsigned int n_options,
            int *options, void **values),
           (link, type, data, bytes, name, n_options, options, values))
{
    (void)type, (void)name, (void)n_options, (void)options, (void)values;
    return link == (CUlinkState)image && data && bytes ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

DRIVER_API(cuLinkComplete, 5050, (CUlinkState link, void **made, size_t *bytes), (link, made, bytes))
{
    if (link != (CUlinkState)image || !made || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    *made = image;
    *bytes = sizeof image;
    return CUDA_SUCCESS;
}

DRIVER_API(cuLinkDestroy, 5050, (CUlinkState link), (link))
{
    return link == (CUlinkState)image ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* Streams and events: all work is done. */

DRIVER_API(cuStreamQuery, 2000, (CUstream stream), (stream))
{
    return stream_check(stream);
}

DRIVER_API(cuStreamGetCtx, 9020, (CUstream stream, CUcontext *context), (stream, context))
{
    struct object *current;
    TRY(stream_check(stream));
    TRY(context_current(&current));
    if (!context)
        return CUDA_ERROR_INVALID_VALUE;
    *context = (CUcontext)current;
    return CUDA_SUCCESS;
}

DRIVER_API(cuStreamWaitEvent, 3020, (CUstream stream, CUevent event, unsigned int flags), (stream, event, flags))
{
    (void)flags;
    TRY(stream_check(stream));
    return object_check(event, EVENT) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

DRIVER_API(cuEventRecord, 2000, (CUevent event, CUstream stream), (event, stream))
{
    TRY(stream_check(stream));
    return object_check(event, EVENT) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

DRIVER_API(cuEventQuery, 2000, (CUevent event), (event))
{
    TRY(driver_started());
    return object_check(event, EVENT) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

DRIVER_API(cuEventElapsedTime, 2000, (float *milliseconds, CUevent from, CUevent to), (milliseconds, from, to))
{
    TRY(driver_started());
    if (!milliseconds || !object_check(from, EVENT) || !object_check(to, EVENT))
        return CUDA_ERROR_INVALID_VALUE;
    *milliseconds = 0;
    return CUDA_SUCCESS;
}

/* The device and the context. */

DRIVER_API(cuDeviceGetUuid, 9020, (unsigned char uuid[16], CUdevice device), (uuid, device))
{
    TRY(device_check(device));
    memset(uuid, 0, 16);
    return CUDA_SUCCESS;
}

DRIVER_API(cuDeviceGetPCIBusId, 4010, (char *name, int length, CUdevice device), (name, length, device))
{
    static const char NAME[] = "0000:01:00.0";
    TRY(device_check(device));
    if (!name || length < (int)sizeof NAME)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(name, NAME, sizeof NAME);
    return CUDA_SUCCESS;
}

DRIVER_API(cuDeviceComputeCapability, 2000, (int *major, int *minor, CUdevice device), (major, minor, device))
{
    TRY(device_check(device));
    if (!major || !minor)
        return CUDA_ERROR_INVALID_VALUE;
    *major = compute_capability() / 10;
    *minor = compute_capability() % 10;
    return CUDA_SUCCESS;
}

DRIVER_API(cuDeviceCanAccessPeer, 4000, (int *can, CUdevice device, CUdevice peer), (can, device, peer))
{
    TRY(device_check(device));
    TRY(device_check(peer));
    if (!can)
        return CUDA_ERROR_INVALID_VALUE;
    *can = 0;
    return CUDA_SUCCESS;
}

DRIVER_API(cuCtxGetApiVersion, 3020, (CUcontext context, unsigned int *version), (context, version))
{
    (void)context;
    TRY(driver_started());
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = 3020;
    return CUDA_SUCCESS;
}

DRIVER_API(cuDevicePrimaryCtxSetFlags_v2, 11000, (CUdevice device, unsigned int flags), (device, flags))
{
    (void)flags;
    return device_check(device);
}

DRIVER_API(cuDevicePrimaryCtxSetFlags, 7000, (CUdevice device, unsigned int flags), (device, flags))
{
    (void)flags;
    return device_check(device);
}

/* What clients are linked with and can do without. */
#define NOT_SUPPORTED(name)                                                                                            \
    EXPORT CUresult name(void);                                                                                        \
    EXPORT CUresult name(void)                                                                                         \
    {                                                                                                                  \
        unknown_count(#name);                                                                                          \
        return CUDA_ERROR_NOT_SUPPORTED;                                                                               \
    }
#include "not_supported.def"
