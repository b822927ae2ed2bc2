/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Starting the driver, the one device, and contexts. A context costs host heap and device memory
 * from the moment it is made (the primary one: from its first retain), and everything made in it
 * ends with it, except pools and cuMemCreate's memory, which belong to the device. */
#include <string.h>

#include "entry.h"

enum { MAX_STACK = 32, ATTRIBUTE_UNKNOWN = -1 };

struct object *default_pool;
static bool started;
static struct object *primary;
static __thread struct {
    struct object *stack[MAX_STACK];
    int depth;
} current __attribute__((tls_model("initial-exec")));

CUresult driver_started(void)
{
    return started ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult device_check(CUdevice device)
{
    TRY(driver_started());
    return device == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

static bool context_alive(struct object *context)
{
    return context->kind == CONTEXT && context->u.in_context.active;
}

CUresult context_current(struct object **context)
{
    TRY(driver_started());
    if (current.depth == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    *context = current.stack[current.depth - 1];
    return context_alive(*context) ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

DRIVER_API(cuInit, 2000, (unsigned int flags), (flags))
{
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (started)
        return CUDA_SUCCESS;
    board_setup();
    primary = object_new(CONTEXT);
    default_pool = object_new(POOL);
    if (!primary || !default_pool)
        return CUDA_ERROR_OUT_OF_MEMORY;
    cost_take(INIT_HEAP_BLOCKS, jmsim_count_heap); /* for good, as the real one's */
    started = true;
    return CUDA_SUCCESS;
}

DRIVER_API(cuDriverGetVersion, 2020, (int *version), (version))
{
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = DRIVER_VERSION;
    return CUDA_SUCCESS;
}

/* The device. */

DRIVER_API(cuDeviceGet, 2000, (CUdevice * device, int ordinal), (device, ordinal))
{
    TRY(device_check(ordinal));
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    *device = 0;
    return CUDA_SUCCESS;
}

DRIVER_API(cuDeviceGetCount, 2000, (int *count), (count))
{
    TRY(driver_started());
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    *count = 1;
    return CUDA_SUCCESS;
}

DRIVER_API(cuDeviceGetName, 2000, (char *name, int length, CUdevice device), (name, length, device))
{
    static const char NAME[] = "Simulated Jetson (memory only)";
    TRY(device_check(device));
    if (!name || length <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    strncpy(name, NAME, (size_t)length - 1);
    name[length - 1] = '\0';
    return CUDA_SUCCESS;
}

/* A Nano's, unless JMSIM_COMPUTE has another, such as 87 for an Orin's 8.7. */
int compute_capability(void)
{
    const char *chosen = getenv("JMSIM_COMPUTE");
    return chosen ? atoi(chosen) : 53;
}

static int attribute_value(int attribute)
{
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
        return 32;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        return 1;
    case CU_DEVICE_ATTRIBUTE_INTEGRATED:
        return board_integrated();
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        return compute_capability() / 10;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        return compute_capability() % 10;
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
        return 1;
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
        return !getenv("JMSIM_NO_VMM");
    default:
        return attribute > 0 ? 0 : ATTRIBUTE_UNKNOWN;
    }
}

DRIVER_API(cuDeviceGetAttribute, 2000, (int *value, int attribute, CUdevice device), (value, attribute, device))
{
    TRY(device_check(device));
    if (!value || attribute_value(attribute) == ATTRIBUTE_UNKNOWN)
        return CUDA_ERROR_INVALID_VALUE;
    *value = attribute_value(attribute);
    return CUDA_SUCCESS;
}

DRIVER_API(cuDeviceTotalMem_v2, 3020, (size_t * bytes, CUdevice device), (bytes, device))
{
    TRY(device_check(device));
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    *bytes = live.board_bytes;
    return CUDA_SUCCESS;
}

DRIVER_API(cuDeviceTotalMem, 2000, (unsigned int *bytes, CUdevice device), (bytes, device))
{
    TRY(device_check(device));
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    *bytes = live.board_bytes > UINT32_MAX ? UINT32_MAX : (unsigned int)live.board_bytes;
    return CUDA_SUCCESS;
}

/* Contexts. */

static CUresult context_begin(struct object *context)
{
    if (!board_back_context(context, CONTEXT_DEVICE_BYTES))
        return CUDA_ERROR_OUT_OF_MEMORY;
    live.context_device_bytes += CONTEXT_DEVICE_BYTES;
    context->cost = cost_take(CONTEXT_HEAP_BLOCKS, jmsim_count_heap);
    context->u.in_context.active = true;
    return CUDA_SUCCESS;
}

static void part_end(struct object *part)
{
    switch (part->kind) {
    case DEVICE:
    case MANAGED:
    case PINNED:
    case REGISTERED:
    case ARRAY:
    case MIPMAPPED_ARRAY:
        memory_end(part);
        break;
    case IPC:
    case EXTERNAL:
    case BUFFER:
        sharing_end(part);
        break;
    case STREAM:
    case EVENT:
    case MODULE:
    case GRAPH:
        resource_end(part);
        break;
    default:
        break;
    }
}

static void context_end(struct object *context)
{
    for (size_t i = 0; i < object_count(); i++) {
        struct object *part = object_slot(i);
        if (part->kind != UNUSED && part->context == context)
            part_end(part);
    }
    while (context->regions) {
        live.slab_reserved_bytes -= context->regions->span_bytes;
        region_end(context, context->regions);
    }
    live.context_device_bytes -= context->board_bytes;
    board_unback(context);
    cost_give(context->cost, jmsim_count_heap);
    context->cost = NULL;
    context->u.in_context.active = false;
}

DRIVER_API(cuCtxCreate_v2, 3020, (CUcontext * handle, unsigned int flags, CUdevice device), (handle, flags, device))
{
    TRY(device_check(device));
    if (!handle || flags > 0xff)
        return CUDA_ERROR_INVALID_VALUE;
    struct object *context = current.depth < MAX_STACK ? object_new(CONTEXT) : NULL;
    if (!context)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = context_begin(context);
    if (result != CUDA_SUCCESS) {
        object_delete(context);
        return result;
    }
    current.stack[current.depth++] = context;
    *handle = (CUcontext)context;
    return CUDA_SUCCESS;
}

DRIVER_API(cuCtxCreate, 2000, (CUcontext * handle, unsigned int flags, CUdevice device), (handle, flags, device))
{
    return do_cuCtxCreate_v2(handle, flags, device);
}

DRIVER_API(cuCtxCreate_v3, 11040,
           (CUcontext * handle, void *affinity, int n_affinity, unsigned int flags, CUdevice device),
           (handle, affinity, n_affinity, flags, device))
{
    return affinity || n_affinity ? CUDA_ERROR_NOT_SUPPORTED : do_cuCtxCreate_v2(handle, flags, device);
}

DRIVER_API(cuCtxCreate_v4, 12050, (CUcontext * handle, void *parameters, unsigned int flags, CUdevice device),
           (handle, parameters, flags, device))
{
    return parameters ? CUDA_ERROR_NOT_SUPPORTED : do_cuCtxCreate_v2(handle, flags, device);
}

DRIVER_API(cuCtxDestroy_v2, 4000, (CUcontext handle), (handle))
{
    TRY(driver_started());
    struct object *context = object_check(handle, CONTEXT);
    if (!context || context == primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    context_end(context);
    if (current.depth > 0 && current.stack[current.depth - 1] == context)
        current.depth--;
    object_delete(context);
    return CUDA_SUCCESS;
}

DRIVER_API(cuCtxDestroy, 2000, (CUcontext handle), (handle))
{
    return do_cuCtxDestroy_v2(handle);
}

/* As PyCUDA ends its contexts: nobody has attached to them since they were made. */
DRIVER_API(cuCtxDetach, 2000, (CUcontext handle), (handle))
{
    return do_cuCtxDestroy_v2(handle);
}

DRIVER_API(cuCtxPushCurrent_v2, 4000, (CUcontext handle), (handle))
{
    TRY(driver_started());
    struct object *context = object_check(handle, CONTEXT);
    if (!context || current.depth == MAX_STACK)
        return CUDA_ERROR_INVALID_CONTEXT;
    current.stack[current.depth++] = context;
    return CUDA_SUCCESS;
}

DRIVER_API(cuCtxPushCurrent, 2000, (CUcontext handle), (handle))
{
    return do_cuCtxPushCurrent_v2(handle);
}

DRIVER_API(cuCtxPopCurrent_v2, 4000, (CUcontext * handle), (handle))
{
    TRY(driver_started());
    if (current.depth == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    struct object *context = current.stack[--current.depth];
    if (handle)
        *handle = (CUcontext)context;
    return CUDA_SUCCESS;
}

DRIVER_API(cuCtxPopCurrent, 2000, (CUcontext * handle), (handle))
{
    return do_cuCtxPopCurrent_v2(handle);
}

DRIVER_API(cuCtxSetCurrent, 4000, (CUcontext handle), (handle))
{
    TRY(driver_started());
    if (handle && !object_check(handle, CONTEXT))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (current.depth > 0)
        current.depth--;
    return handle ? do_cuCtxPushCurrent_v2(handle) : CUDA_SUCCESS;
}

DRIVER_API(cuCtxGetCurrent, 4000, (CUcontext * handle), (handle))
{
    TRY(driver_started());
    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    *handle = current.depth ? (CUcontext)current.stack[current.depth - 1] : NULL;
    return CUDA_SUCCESS;
}

DRIVER_API(cuCtxGetDevice, 2000, (CUdevice * device), (device))
{
    struct object *context;
    TRY(context_current(&context));
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    *device = 0;
    return CUDA_SUCCESS;
}

DRIVER_API(cuCtxSynchronize, 2000, (void), ())
{
    struct object *context;
    TRY(context_current(&context));
    pools_release_idle();
    return CUDA_SUCCESS;
}

DRIVER_API(cuDevicePrimaryCtxRetain, 7000, (CUcontext * handle, CUdevice device), (handle, device))
{
    TRY(device_check(device));
    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    if (!primary->u.in_context.active)
        TRY(context_begin(primary));
    primary->n_references++;
    *handle = (CUcontext)primary;
    return CUDA_SUCCESS;
}

DRIVER_API(cuDevicePrimaryCtxGetState, 7000, (CUdevice device, unsigned int *flags, int *active),
           (device, flags, active))
{
    TRY(device_check(device));
    if (!flags || !active)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = 0;
    *active = primary->u.in_context.active;
    return CUDA_SUCCESS;
}

DRIVER_API(cuDevicePrimaryCtxRelease_v2, 11000, (CUdevice device), (device))
{
    TRY(device_check(device));
    if (primary->n_references == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (--primary->n_references == 0)
        context_end(primary);
    return CUDA_SUCCESS;
}

DRIVER_API(cuDevicePrimaryCtxRelease, 7000, (CUdevice device), (device))
{
    return do_cuDevicePrimaryCtxRelease_v2(device);
}

/* Resetting does not release: whoever retained it still has to. */
DRIVER_API(cuDevicePrimaryCtxReset_v2, 11000, (CUdevice device), (device))
{
    TRY(device_check(device));
    context_end(primary);
    return CUDA_SUCCESS;
}

DRIVER_API(cuDevicePrimaryCtxReset, 7000, (CUdevice device), (device))
{
    return do_cuDevicePrimaryCtxReset_v2(device);
}
