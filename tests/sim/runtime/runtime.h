/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inside of the simulated CUDA runtime: the driver functions it calls, and the two things each of
 * its functions does around them: see that the thread has a context, and remember the error. */
#ifndef JMSIM_RUNTIME_H
#define JMSIM_RUNTIME_H

#include "../cuda_abi.h"
#include "../jmsim.h"

/* Exported from the shared library; in the static one hidden, as in the real one. */
#ifdef RUNTIME_STATIC
#define RUNTIME_API __attribute__((visibility("hidden")))
#else
#define RUNTIME_API __attribute__((visibility("default")))
#endif

#define DRIVER_CALLS(X)                                                                                                \
    X(cuInit)                                                                                                          \
    X(cuDriverGetVersion)                                                                                              \
    X(cuDeviceGetCount)                                                                                                \
    X(cuDeviceGetName)                                                                                                 \
    X(cuDeviceGetAttribute)                                                                                            \
    X(cuDeviceTotalMem_v2)                                                                                             \
    X(cuCtxGetCurrent)                                                                                                 \
    X(cuCtxSetCurrent)                                                                                                 \
    X(cuCtxSynchronize)                                                                                                \
    X(cuDevicePrimaryCtxRetain)                                                                                        \
    X(cuDevicePrimaryCtxRelease_v2)                                                                                    \
    X(cuDevicePrimaryCtxReset_v2)                                                                                      \
    X(cuStreamCreateWithPriority)                                                                                      \
    X(cuStreamDestroy_v2)                                                                                              \
    X(cuStreamSynchronize)                                                                                             \
    X(cuEventCreate)                                                                                                   \
    X(cuEventDestroy_v2)                                                                                               \
    X(cuEventSynchronize)                                                                                              \
    X(cuMemGetInfo_v2)                                                                                                 \
    X(cuMemAlloc_v2)                                                                                                   \
    X(cuMemAllocPitch_v2)                                                                                              \
    X(cuMemAllocManaged)                                                                                               \
    X(cuMemHostAlloc)                                                                                                  \
    X(cuMemHostRegister_v2)                                                                                            \
    X(cuMemHostUnregister)                                                                                             \
    X(cuMemFree_v2)                                                                                                    \
    X(cuMemFreeHost)                                                                                                   \
    X(cuArray3DCreate_v2)                                                                                              \
    X(cuArrayDestroy)                                                                                                  \
    X(cuMipmappedArrayCreate)                                                                                          \
    X(cuMipmappedArrayDestroy)                                                                                         \
    X(cuMemAllocAsync)                                                                                                 \
    X(cuMemAllocAsync_ptsz)                                                                                            \
    X(cuMemAllocFromPoolAsync)                                                                                         \
    X(cuMemAllocFromPoolAsync_ptsz)                                                                                    \
    X(cuMemFreeAsync)                                                                                                  \
    X(cuMemFreeAsync_ptsz)                                                                                             \
    X(cuMemPoolCreate)                                                                                                 \
    X(cuMemPoolDestroy)                                                                                                \
    X(cuMemPoolTrimTo)                                                                                                 \
    X(cuMemPoolGetAttribute)                                                                                           \
    X(cuMemPoolSetAttribute)                                                                                           \
    X(cuDeviceGetDefaultMemPool)                                                                                       \
    X(cuDeviceGetMemPool)                                                                                              \
    X(cuDeviceSetMemPool)                                                                                              \
    X(cuIpcGetMemHandle)                                                                                               \
    X(cuIpcOpenMemHandle_v2)                                                                                           \
    X(cuIpcCloseMemHandle)                                                                                             \
    X(cuImportExternalMemory)                                                                                          \
    X(cuExternalMemoryGetMappedBuffer)                                                                                 \
    X(cuDestroyExternalMemory)                                                                                         \
    X(cuMemcpyHtoD_v2)                                                                                                 \
    X(cuMemcpyDtoH_v2)                                                                                                 \
    X(cuMemcpyDtoD_v2)                                                                                                 \
    X(cuMemsetD8_v2)                                                                                                   \
    X(cuMemsetD2D8_v2)                                                                                                 \
    X(cuPointerGetAttribute)                                                                                           \
    X(cuModuleLoadData)                                                                                                \
    X(cuDeviceGetPCIBusId)                                                                                             \
    X(cuEventRecord)                                                                                                   \
    X(cuStreamWaitEvent)                                                                                               \
    X(cuGraphCreate)                                                                                                   \
    X(cuGraphAddKernelNode_v2)                                                                                         \
    X(cuGraphInstantiateWithFlags)                                                                                     \
    X(cuGraphExecUpdate_v2)                                                                                            \
    X(cuGraphLaunch)                                                                                                   \
    X(cuGraphDestroy)                                                                                                  \
    X(cuGraphExecDestroy)                                                                                              \
    X(cuGetErrorString)                                                                                                \
    X(cuGetErrorName)

struct driver_calls {
#define DRIVER_FIELD(name) __typeof__(&name) name;
    DRIVER_CALLS(DRIVER_FIELD)
#undef DRIVER_FIELD
};

extern struct driver_calls driver __attribute__((visibility("hidden")));
extern const int runtime_version __attribute__((visibility("hidden"))); /* version.c */

/* Loads and starts the driver. */
__attribute__((visibility("hidden"))) cudaError_t runtime_start(void);
/* The same, and makes the primary context current if the thread has no context. */
__attribute__((visibility("hidden"))) cudaError_t runtime_enter(void);
/* Remembers an error for cudaGetLastError and returns it. */
__attribute__((visibility("hidden"))) cudaError_t runtime_leave(cudaError_t error);

/* A runtime function that is one driver call. */
#define ENTER_AND_CALL(call)                                                                                           \
    do {                                                                                                               \
        cudaError_t entered_ = runtime_enter();                                                                        \
        return runtime_leave(entered_ != CUDA_SUCCESS ? entered_ : (call));                                            \
    } while (0)

#endif
