/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The runtime besides memory, for programs that nvcc has compiled: the code in a library registers its
 * kernels and launches them, streams are captured into graphs, pointers are asked what they are. It is
 * linked where such programs run (../../torch-cuda, ../../field). A launch does nothing, except that the
 * first one loads the kernels' module, as lazy loading does; a graph is one kernel of it. */
#include <stdlib.h>
#include <string.h>

#include "../costs.h"
#include "runtime.h"

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

RUNTIME_API void __cudaRegisterFatBinaryEnd(void **registered)
{
    (void)registered;
}

RUNTIME_API void __cudaUnregisterFatBinary(void **registered)
{
    (void)registered;
}

RUNTIME_API void __cudaRegisterFunction(void **registered, const char *stub, char *name)
{
    (void)registered, (void)stub, (void)name;
}

RUNTIME_API void __cudaRegisterVar(void **registered, char *variable)
{
    (void)registered, (void)variable;
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

static CUmodule kernels;

static cudaError_t kernels_load(void)
{
    static const char image[] = "kernels";
    cudaError_t error = runtime_enter();
    if (error == CUDA_SUCCESS && !kernels)
        error = driver.cuModuleLoadData(&kernels, image);
    return error;
}

static cudaError_t launch(void)
{
    return runtime_leave(kernels_load());
}

RUNTIME_API cudaError_t cudaLaunchKernel(const void *function, struct dim3 grid, struct dim3 block, void **arguments,
                                         size_t shared_bytes, cudaStream_t stream)
{
    (void)function, (void)grid, (void)block, (void)arguments, (void)shared_bytes, (void)stream;
    return launch();
}

/* CUDA 13's stubs ask for a kernel once and launch that; here it is the stub. */
RUNTIME_API cudaError_t __cudaGetKernel(const void **kernel, const void *function)
{
    *kernel = function;
    return runtime_leave(kernels_load());
}

RUNTIME_API cudaError_t __cudaLaunchKernel(const void *kernel, struct dim3 grid, struct dim3 block, void **arguments,
                                           size_t shared_bytes, cudaStream_t stream)
{
    return cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, stream);
}

RUNTIME_API cudaError_t cudaLaunchCooperativeKernel(const void *function, struct dim3 grid, struct dim3 block,
                                                    void **arguments, size_t shared_bytes, cudaStream_t stream)
{
    return cudaLaunchKernel(function, grid, block, arguments, shared_bytes, stream);
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

static int compute_capability(void)
{
    int major = 0, minor = 0;
    driver.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0);
    driver.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0);
    return 10 * major + minor;
}

RUNTIME_API cudaError_t cudaFuncGetAttributes(struct function_attributes *attributes, const void *function)
{
    (void)function;
    cudaError_t error = runtime_start();
    if (error != CUDA_SUCCESS)
        return runtime_leave(error);
    *attributes = (struct function_attributes){.most_threads_per_block = 1024,
                                               .registers = 32,
                                               .ptx_version = compute_capability(),
                                               .binary_version = compute_capability(),
                                               .most_dynamic_shared_bytes = KIB(48)};
    return CUDA_SUCCESS;
}

/* Of any function and attribute: there is no code whose limits it could exceed. */
RUNTIME_API cudaError_t cudaFuncSetAttribute(const void *function, int attribute, int value)
{
    (void)function, (void)attribute, (void)value;
    return runtime_leave(runtime_start());
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
static CUgraph captured_graph;

static int capture_status(cudaStream_t stream)
{
    return capture.status == CAPTURE_ACTIVE && stream == capture.stream ? CAPTURE_ACTIVE : CAPTURE_NONE;
}

RUNTIME_API cudaError_t cudaStreamBeginCapture(cudaStream_t stream, int mode)
{
    (void)mode;
    cudaError_t error = kernels_load();
    if (error == CUDA_SUCCESS)
        error = driver.cuGraphCreate(&captured_graph, 0);
    if (error != CUDA_SUCCESS)
        return runtime_leave(error);
    capture.stream = stream;
    capture.status = CAPTURE_ACTIVE;
    capture.id++;
    return CUDA_SUCCESS;
}

RUNTIME_API cudaError_t cudaStreamEndCapture(cudaStream_t stream, CUgraph *made)
{
    void *node;
    if (capture_status(stream) != CAPTURE_ACTIVE)
        return runtime_leave(CUDA_ERROR_INVALID_VALUE);
    capture.status = CAPTURE_NONE;
    *made = captured_graph;
    CUfunction kernel = (CUfunction)kernels;
    ENTER_AND_CALL(driver.cuGraphAddKernelNode_v2(&node, captured_graph, NULL, 0, &kernel));
}

RUNTIME_API cudaError_t cudaStreamIsCapturing(cudaStream_t stream, int *status)
{
    *status = capture_status(stream);
    return CUDA_SUCCESS;
}

RUNTIME_API cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream, int *status, unsigned long long *id,
                                                    CUgraph *captured, const void ***dependencies,
                                                    size_t *n_dependencies)
{
    *status = capture_status(stream);
    if (id)
        *id = capture.id;
    if (captured)
        *captured = captured_graph;
    if (dependencies)
        *dependencies = NULL;
    if (n_dependencies)
        *n_dependencies = 0;
    return CUDA_SUCCESS;
}

RUNTIME_API cudaError_t cudaGraphInstantiate(CUgraphExec *executable, CUgraph graph, unsigned long long flags)
{
    (void)flags;
    ENTER_AND_CALL(driver.cuGraphInstantiateWithFlags(executable, graph, 0));
}

RUNTIME_API cudaError_t cudaGraphInstantiateWithFlags(CUgraphExec *executable, CUgraph graph, unsigned long long flags)
{
    return cudaGraphInstantiate(executable, graph, flags);
}

RUNTIME_API cudaError_t cudaGraphExecUpdate(CUgraphExec executable, CUgraph graph, int *result)
{
    ENTER_AND_CALL(driver.cuGraphExecUpdate_v2(executable, graph, result));
}

RUNTIME_API cudaError_t cudaGraphLaunch(CUgraphExec executable, cudaStream_t stream)
{
    ENTER_AND_CALL(driver.cuGraphLaunch(executable, stream));
}

RUNTIME_API cudaError_t cudaGraphDestroy(CUgraph graph)
{
    ENTER_AND_CALL(driver.cuGraphDestroy(graph));
}

RUNTIME_API cudaError_t cudaGraphExecDestroy(CUgraphExec executable)
{
    ENTER_AND_CALL(driver.cuGraphExecDestroy(executable));
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

RUNTIME_API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    ENTER_AND_CALL(driver.cuEventRecord(event, stream));
}

RUNTIME_API cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
    ENTER_AND_CALL(driver.cuStreamWaitEvent(stream, event, flags));
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

RUNTIME_API cudaError_t cudaDeviceGetPCIBusId(char *name, int length, int device)
{
    ENTER_AND_CALL(driver.cuDeviceGetPCIBusId(name, length, device));
}

RUNTIME_API cudaError_t cudaSetDeviceFlags(unsigned int flags)
{
    (void)flags;
    return runtime_leave(runtime_start());
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

RUNTIME_API cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                                          size_t height, int direction, cudaStream_t stream)
{
    (void)stream;
    cudaError_t error = CUDA_SUCCESS;
    for (size_t row = 0; row < height && error == CUDA_SUCCESS; row++)
        error = cudaMemcpy((char *)to + row * to_pitch, (const char *)from + row * from_pitch, width, direction);
    return error;
}
