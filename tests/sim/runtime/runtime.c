/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The simulated CUDA runtime: start, device, errors, streams, events. Like the real one it finds the
 * driver library by dlopen, makes the primary context current when a thread first needs one, and
 * has a last error per thread. JMSIM_CUDART_PROC_ADDRESS=1 makes it ask cuGetProcAddress for the
 * driver's functions, as runtimes since CUDA 11.3 do, instead of dlsym. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../costs.h"
#include "runtime.h"

struct driver_calls driver;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cudaError_t start_error = CUDA_ERROR_INSUFFICIENT_DRIVER;
static int started, retained;
static CUcontext primary;
static __thread cudaError_t last_error __attribute__((tls_model("initial-exec")));

/* The base name of cuMemAlloc_v2 is cuMemAlloc, of cuMemFreeAsync_ptsz cuMemFreeAsync. */
static void *ask_driver(__typeof__(&cuGetProcAddress_v2) get, const char *name)
{
    char base[64] = "";
    void *function = NULL;
    strncpy(base, name, sizeof base - 1);
    const char *suffix = strrchr(name, '_');
    if (suffix)
        base[suffix - name] = '\0';
    int per_thread = suffix && suffix[1] == 'p';
    get(base, &function, 12000,
        per_thread ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM : CU_GET_PROC_ADDRESS_DEFAULT, NULL);
    return function;
}

static int find_calls(void *library)
{
    const char *mode = getenv("JMSIM_CUDART_PROC_ADDRESS");
    __typeof__(&cuGetProcAddress_v2) get = NULL;
    if (mode && mode[0] == '1')
        *(void **)&get = dlsym(library, "cuGetProcAddress_v2");
#define DRIVER_FIND(name)                                                                                              \
    *(void **)&driver.name = get ? ask_driver(get, #name) : dlsym(library, #name);                                     \
    if (!driver.name)                                                                                                  \
        return 0;
    DRIVER_CALLS(DRIVER_FIND)
#undef DRIVER_FIND
    return 1;
}

static cudaError_t start_once(void)
{
    void (*count)(int64_t, int64_t);
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library || !find_calls(library))
        return CUDA_ERROR_INSUFFICIENT_DRIVER;
    *(void **)&count = dlsym(library, "jmsim_count_heap");
    if (count)
        cost_take(RUNTIME_HEAP_BLOCKS, count); /* for good */
    return driver.cuInit(0);
}

cudaError_t runtime_start(void)
{
    pthread_mutex_lock(&lock);
    if (!started) {
        started = 1;
        start_error = start_once();
    }
    pthread_mutex_unlock(&lock);
    return start_error;
}

cudaError_t runtime_enter(void)
{
    CUcontext context = NULL;
    cudaError_t error = runtime_start();
    if (error != CUDA_SUCCESS)
        return error;
    driver.cuCtxGetCurrent(&context);
    pthread_mutex_lock(&lock);
    /* A context that the program made itself is used as it is. */
    if (!context || context == primary) {
        if (!retained)
            error = driver.cuDevicePrimaryCtxRetain(&primary, 0);
        retained = error == CUDA_SUCCESS;
        if (retained && !context)
            error = driver.cuCtxSetCurrent(primary);
    }
    pthread_mutex_unlock(&lock);
    return error;
}

cudaError_t runtime_leave(cudaError_t error)
{
    if (error != CUDA_SUCCESS)
        last_error = error;
    return error;
}

static cudaError_t check_device(int device)
{
    cudaError_t error = runtime_start();
    return error == CUDA_SUCCESS && device != 0 ? CUDA_ERROR_INVALID_DEVICE : error;
}

#define TRY_LEAVE(call)                                                                                                \
    do {                                                                                                               \
        cudaError_t try_error_ = (call);                                                                               \
        if (try_error_ != CUDA_SUCCESS)                                                                                \
            return runtime_leave(try_error_);                                                                          \
    } while (0)

/* Errors and versions. */

RUNTIME_API cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last_error;
    last_error = CUDA_SUCCESS;
    return error;
}

RUNTIME_API cudaError_t cudaPeekAtLastError(void)
{
    return last_error;
}

RUNTIME_API const char *cudaGetErrorString(cudaError_t error)
{
    const char *text = "unrecognized error code";
    if (error == CUDA_ERROR_INSUFFICIENT_DRIVER)
        return "CUDA driver version is insufficient for CUDA runtime version";
    if (runtime_start() == CUDA_SUCCESS)
        driver.cuGetErrorString(error, &text);
    return text;
}

/* The runtime has names of its own for the same values. */
RUNTIME_API const char *cudaGetErrorName(cudaError_t error)
{
    switch (error) {
    case CUDA_SUCCESS:
        return "cudaSuccess";
    case CUDA_ERROR_INVALID_VALUE:
        return "cudaErrorInvalidValue";
    case CUDA_ERROR_OUT_OF_MEMORY:
        return "cudaErrorMemoryAllocation";
    case CUDA_ERROR_NOT_INITIALIZED:
        return "cudaErrorInitializationError";
    case CUDA_ERROR_INSUFFICIENT_DRIVER:
        return "cudaErrorInsufficientDriver";
    case CUDA_ERROR_INVALID_DEVICE:
        return "cudaErrorInvalidDevice";
    case CUDA_ERROR_INVALID_CONTEXT:
        return "cudaErrorDeviceUninitialized";
    case CUDA_ERROR_INVALID_HANDLE:
        return "cudaErrorInvalidResourceHandle";
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
        return "cudaErrorContextIsDestroyed";
    case CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED:
        return "cudaErrorHostMemoryAlreadyRegistered";
    case CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED:
        return "cudaErrorHostMemoryNotRegistered";
    default:
        return "unrecognized error code";
    }
}

RUNTIME_API cudaError_t cudaRuntimeGetVersion(int *version)
{
    if (!version)
        return runtime_leave(CUDA_ERROR_INVALID_VALUE);
    *version = runtime_version;
    return CUDA_SUCCESS;
}

RUNTIME_API cudaError_t cudaDriverGetVersion(int *version)
{
    if (!version)
        return runtime_leave(CUDA_ERROR_INVALID_VALUE);
    *version = 0; /* no driver: success, and this */
    if (runtime_start() == CUDA_SUCCESS)
        driver.cuDriverGetVersion(version);
    return CUDA_SUCCESS;
}

/* The device. These start the driver and make no context. */

RUNTIME_API cudaError_t cudaGetDeviceCount(int *count)
{
    TRY_LEAVE(runtime_start());
    return runtime_leave(driver.cuDeviceGetCount(count));
}

RUNTIME_API cudaError_t cudaGetDevice(int *device)
{
    TRY_LEAVE(runtime_start());
    if (!device)
        return runtime_leave(CUDA_ERROR_INVALID_VALUE);
    *device = 0;
    return CUDA_SUCCESS;
}

RUNTIME_API cudaError_t cudaSetDevice(int device)
{
    return runtime_leave(check_device(device));
}

RUNTIME_API cudaError_t cudaDeviceGetAttribute(int *value, int attribute, int device)
{
    TRY_LEAVE(check_device(device));
    return runtime_leave(driver.cuDeviceGetAttribute(value, attribute, device));
}

static void fill_head(struct cudaDevicePropHead *head, int device)
{
    memset(head, 0, offsetof(struct cudaDevicePropHead, canMapHostMemory) + sizeof(int));
    driver.cuDeviceGetName(head->name, sizeof head->name, device);
    driver.cuDeviceTotalMem_v2(&head->totalGlobalMem, device);
    driver.cuDeviceGetAttribute(&head->major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    driver.cuDeviceGetAttribute(&head->minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    driver.cuDeviceGetAttribute(&head->integrated, CU_DEVICE_ATTRIBUTE_INTEGRATED, device);
    driver.cuDeviceGetAttribute(&head->warpSize, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device);
    driver.cuDeviceGetAttribute(&head->multiProcessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
    head->sharedMemPerBlock = KIB(48);
    head->regsPerBlock = 64 << 10;
    head->maxThreadsPerBlock = head->maxThreadsDim[0] = head->maxThreadsDim[1] = 1024;
    head->maxThreadsDim[2] = 64;
    head->maxGridSize[0] = INT32_MAX;
    head->maxGridSize[1] = head->maxGridSize[2] = UINT16_MAX;
    head->canMapHostMemory = 1;
}

/* CUDA 12's. */
static void fill_properties_12(struct cudaDeviceProp12 *all, int device)
{
    memset(all, 0, sizeof *all);
    fill_head(&all->head, device);
    all->l2CacheSize = 512 << 10;
    all->maxThreadsPerMultiProcessor = 2048;
    all->sharedMemPerMultiprocessor = KIB(64);
    all->regsPerMultiprocessor = 64 << 10;
    all->managedMemory = 1;
    all->sharedMemPerBlockOptin = KIB(48);
}

static void fill_properties_13(struct cudaDeviceProp13 *all, const struct cudaDeviceProp12 *from)
{
    memset(all, 0, sizeof *all);
    memcpy(all, &from->head, offsetof(struct cudaDevicePropHead, clockRate)); /* the same up to there */
    all->totalConstMem = from->head.totalConstMem;
    all->major = from->head.major;
    all->minor = from->head.minor;
    all->multiProcessorCount = from->head.multiProcessorCount;
    all->integrated = from->head.integrated;
    all->canMapHostMemory = from->head.canMapHostMemory;
    all->l2CacheSize = from->l2CacheSize;
    all->maxThreadsPerMultiProcessor = from->maxThreadsPerMultiProcessor;
    all->sharedMemPerMultiprocessor = from->sharedMemPerMultiprocessor;
    all->regsPerMultiprocessor = from->regsPerMultiprocessor;
    all->managedMemory = from->managedMemory;
    all->sharedMemPerBlockOptin = from->sharedMemPerBlockOptin;
}

/* Fills only what the releases before CUDA 13 have in common, and the form of 13 in its runtime. */
RUNTIME_API cudaError_t cudaGetDeviceProperties(void *properties, int device)
{
    struct cudaDevicePropHead *head = properties;
    TRY_LEAVE(check_device(device));
    if (!head)
        return runtime_leave(CUDA_ERROR_INVALID_VALUE);
    if (runtime_version >= 13000) {
        struct cudaDeviceProp12 all;
        fill_properties_12(&all, device);
        fill_properties_13(properties, &all);
        return CUDA_SUCCESS;
    }
    fill_head(head, device);
    return CUDA_SUCCESS;
}

RUNTIME_API cudaError_t cudaGetDeviceProperties_v2(void *properties, int device)
{
    TRY_LEAVE(check_device(device));
    if (!properties)
        return runtime_leave(CUDA_ERROR_INVALID_VALUE);
    fill_properties_12(properties, device);
    return CUDA_SUCCESS;
}

RUNTIME_API cudaError_t cudaDeviceSynchronize(void)
{
    ENTER_AND_CALL(driver.cuCtxSynchronize());
}

/* Ends the primary context. The next call that needs one begins it again. */
RUNTIME_API cudaError_t cudaDeviceReset(void)
{
    CUcontext context = NULL;
    TRY_LEAVE(runtime_start());
    driver.cuCtxGetCurrent(&context);
    if (context && context != primary)
        return CUDA_SUCCESS; /* documented: resets only the runtime's own state for that context */
    pthread_mutex_lock(&lock);
    cudaError_t error = driver.cuDevicePrimaryCtxReset_v2(0);
    if (retained)
        driver.cuDevicePrimaryCtxRelease_v2(0);
    retained = 0;
    pthread_mutex_unlock(&lock);
    return runtime_leave(error);
}

/* Streams and events. */

RUNTIME_API cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags, int priority)
{
    ENTER_AND_CALL(driver.cuStreamCreateWithPriority(stream, flags, priority));
}

RUNTIME_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
    ENTER_AND_CALL(driver.cuStreamCreateWithPriority(stream, flags, 0));
}

RUNTIME_API cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    ENTER_AND_CALL(driver.cuStreamCreateWithPriority(stream, 0, 0));
}

RUNTIME_API cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    ENTER_AND_CALL(driver.cuStreamDestroy_v2(stream));
}

RUNTIME_API cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    ENTER_AND_CALL(driver.cuStreamSynchronize(stream));
}

RUNTIME_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
    ENTER_AND_CALL(driver.cuEventCreate(event, flags));
}

RUNTIME_API cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    ENTER_AND_CALL(driver.cuEventCreate(event, 0));
}

RUNTIME_API cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    ENTER_AND_CALL(driver.cuEventDestroy_v2(event));
}

RUNTIME_API cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    ENTER_AND_CALL(driver.cuEventSynchronize(event));
}
