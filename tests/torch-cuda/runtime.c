/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What PyTorch asks of libcudart besides memory: the code that nvcc puts into a library registers its
 * kernels and launches them, streams are captured into graphs, pointers are asked what they are.
 * Linked with the runtime of tests/sim. A launch does nothing, except that the first one loads the
 * kernels' module, as lazy loading does; a graph holds nothing. Functions that write no result and
 * need do nothing are not here: the ones that are missing in the end succeed (stubs). */
#include <stdlib.h>
#include <string.h>

#include "../sim/costs.h"
#include "../sim/runtime/runtime.h"

struct dim3 {
    unsigned int x, y, z;
};

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, int direction);
cudaError_t cudaMemset(void *to, int value, size_t bytes);

/* Kernels. */

RUNTIME_API void **__cudaRegisterFatBinary(const void *fat_binary)
{
    static void *handle;
    handle = (void *)(uintptr_t)fat_binary;
    return &handle;
}

RUNTIME_API int __cudaPushCallConfiguration(struct dim3 grid, struct dim3 block, size_t shared_bytes,
                                            cudaStream_t stream)
{
    (void)grid, (void)block, (void)shared_bytes, (void)stream;
    return 0; /* or the kernel would not be launched */
}

RUNTIME_API int __cudaPopCallConfiguration(struct dim3 *grid, struct dim3 *block, size_t *shared_bytes, void *stream)
{
    *grid = *block = (struct dim3){1, 1, 1};
    *shared_bytes = 0;
    *(cudaStream_t *)stream = NULL;
    return 0;
}

static cudaError_t launch(void)
{
    static const char image[] = "kernels";
    static CUmodule kernels;
    cudaError_t error = runtime_enter();
    if (error == CUDA_SUCCESS && !kernels)
        error = driver.cuModuleLoadData(&kernels, image);
    return runtime_leave(error);
}

RUNTIME_API cudaError_t cudaLaunchKernel(const void *function, struct dim3 grid, struct dim3 block, void **arguments,
                                         size_t shared_bytes, cudaStream_t stream)
{
    (void)function, (void)grid, (void)block, (void)arguments, (void)shared_bytes, (void)stream;
    return launch();
}

RUNTIME_API cudaError_t cudaLaunchKernelExC(const void *configuration, const void *function, void **arguments)
{
    (void)configuration, (void)function, (void)arguments;
    return launch();
}

RUNTIME_API cudaError_t cudaLaunchHostFunc(cudaStream_t stream, void (*function)(void *), void *argument)
{
    (void)stream;
    function(argument);
    return CUDA_SUCCESS;
}

struct function_attributes { /* the start of cudaFuncAttributes */
    size_t shared_bytes, constant_bytes, local_bytes;
    int most_threads_per_block, registers, ptx_version, binary_version, cache_mode, most_dynamic_shared_bytes;
};

RUNTIME_API cudaError_t cudaFuncGetAttributes(struct function_attributes *attributes, const void *function)
{
    (void)function;
    *attributes = (struct function_attributes){.most_threads_per_block = 1024,
                                               .registers = 32,
                                               .ptx_version = 53,
                                               .binary_version = 53,
                                               .most_dynamic_shared_bytes = KIB(48)};
    return CUDA_SUCCESS;
}

RUNTIME_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *n_blocks, const void *function,
                                                                               int block, size_t shared_bytes,
                                                                               unsigned int flags)
{
    (void)function, (void)block, (void)shared_bytes, (void)flags;
    *n_blocks = 2;
    return CUDA_SUCCESS;
}

/* Streams, events, captures. One capture at a time is enough. */

enum { CAPTURE_NONE, CAPTURE_ACTIVE };

static struct {
    cudaStream_t stream;
    unsigned long long id;
    int status;
} capture;
static int graph; /* stands for every graph: none of them holds anything */

static int capture_status(cudaStream_t stream)
{
    return capture.status == CAPTURE_ACTIVE && stream == capture.stream ? CAPTURE_ACTIVE : CAPTURE_NONE;
}

RUNTIME_API cudaError_t cudaStreamBeginCapture(cudaStream_t stream, int mode)
{
    (void)mode;
    capture.stream = stream;
    capture.status = CAPTURE_ACTIVE;
    capture.id++;
    return CUDA_SUCCESS;
}

RUNTIME_API cudaError_t cudaStreamEndCapture(cudaStream_t stream, void **made)
{
    (void)stream;
    capture.status = CAPTURE_NONE;
    *made = &graph;
    return CUDA_SUCCESS;
}

RUNTIME_API cudaError_t cudaStreamIsCapturing(cudaStream_t stream, int *status)
{
    *status = capture_status(stream);
    return CUDA_SUCCESS;
}

RUNTIME_API cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream, int *status, unsigned long long *id,
                                                    void **captured, const void ***dependencies, size_t *n_dependencies)
{
    *status = capture_status(stream);
    if (id)
        *id = capture.id;
    if (captured)
        *captured = &graph;
    if (dependencies)
        *dependencies = NULL;
    if (n_dependencies)
        *n_dependencies = 0;
    return CUDA_SUCCESS;
}

RUNTIME_API cudaError_t cudaGraphInstantiate(void **executable, void *from, unsigned long long flags)
{
    (void)flags;
    *executable = from;
    return CUDA_SUCCESS;
}

RUNTIME_API cudaError_t cudaGraphInstantiateWithFlags(void **executable, void *from, unsigned long long flags)
{
    return cudaGraphInstantiate(executable, from, flags);
}

RUNTIME_API cudaError_t cudaGraphGetNodes(void *from, void **nodes, size_t *n_nodes)
{
    (void)from, (void)nodes;
    *n_nodes = 1; /* PyTorch warns of an empty one */
    return CUDA_SUCCESS;
}

RUNTIME_API cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority)
{
    (void)stream;
    *priority = 0;
    return CUDA_SUCCESS;
}

RUNTIME_API cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return CUDA_SUCCESS;
}

RUNTIME_API cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to)
{
    (void)from, (void)to;
    *milliseconds = 0.01F;
    return CUDA_SUCCESS;
}

/* Memory of other kinds. */

struct pointer_attributes { /* cudaPointerAttributes */
    int type, device;
    void *device_pointer, *host_pointer;
};

enum { UNREGISTERED, HOST, DEVICE };

RUNTIME_API cudaError_t cudaPointerGetAttributes(struct pointer_attributes *attributes, const void *pointer)
{
    unsigned int type = UNREGISTERED;
    cudaError_t error = runtime_enter();
    if (error != CUDA_SUCCESS)
        return runtime_leave(error);
    if (driver.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)pointer) != CUDA_SUCCESS)
        type = UNREGISTERED;
    attributes->type = (int)type;
    attributes->device = type == UNREGISTERED ? -2 : 0;
    attributes->device_pointer = type == UNREGISTERED ? NULL : (void *)(uintptr_t)pointer;
    attributes->host_pointer = type == DEVICE ? NULL : (void *)(uintptr_t)pointer;
    return CUDA_SUCCESS;
}

RUNTIME_API cudaError_t cudaHostGetDevicePointer(void **device_pointer, void *host_pointer, unsigned int flags)
{
    (void)flags;
    *device_pointer = host_pointer;
    return CUDA_SUCCESS;
}

RUNTIME_API cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    (void)device, (void)peer;
    *can = 0;
    return CUDA_SUCCESS;
}

RUNTIME_API cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                                            cudaStream_t stream)
{
    (void)to_device, (void)from_device, (void)stream;
    return cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToDevice);
}

RUNTIME_API cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    (void)stream;
    return cudaMemset(to, value, bytes);
}
