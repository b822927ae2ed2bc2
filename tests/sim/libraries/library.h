/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What cuDNN, cuBLAS and the other simulated libraries have in common: their handles. A handle is a
 * heap block that holds what making it took: device memory, pinned memory, streams, events, a
 * module's code, host heap. All of it is had through the exported functions of the runtime and the
 * driver, as the real libraries do, so that a profiler sees it with this library on the stack. */
#ifndef JMSIM_LIBRARY_H
#define JMSIM_LIBRARY_H

#include "../costs.h"
#include "../cuda_abi.h"
#include "../jmsim.h"

#define LIBRARY_API __attribute__((visibility("default")))

enum { MOST_DEVICE_BLOCKS = 4, MOST_STREAMS = 2, MOST_EVENTS = 2 };

struct handle_cost {
    size_t device_bytes[MOST_DEVICE_BLOCKS]; /* up to the first 0 */
    size_t pinned_bytes;
    unsigned n_streams, n_events, n_modules, n_heap_blocks;
};

struct handle {
    const struct handle_cost *cost; /* also tells a handle from what is not one */
    void *device[MOST_DEVICE_BLOCKS];
    void *pinned;
    cudaStream_t streams[MOST_STREAMS];
    cudaEvent_t events[MOST_EVENTS];
    CUmodule module;
    struct cost *heap;
    cudaStream_t stream; /* the caller's */
};

static inline void handle_delete(struct handle *handle)
{
    for (unsigned i = 0; i < MOST_DEVICE_BLOCKS; i++)
        if (handle->device[i])
            cudaFree(handle->device[i]);
    if (handle->pinned)
        cudaFreeHost(handle->pinned);
    for (unsigned i = 0; i < MOST_STREAMS; i++)
        if (handle->streams[i])
            cudaStreamDestroy(handle->streams[i]);
    for (unsigned i = 0; i < MOST_EVENTS; i++)
        if (handle->events[i])
            cudaEventDestroy(handle->events[i]);
    if (handle->module)
        cuModuleUnload(handle->module);
    cost_give(handle->heap, jmsim_count_heap);
    handle->cost = NULL;
    jmsim_count_heap(-(int64_t)sizeof *handle, -1);
    free(handle);
}

/* NULL: the board is full; nothing is kept. */
static inline struct handle *handle_new(const struct handle_cost *cost)
{
    static const char image[] = "kernels";
    if (cudaFree(NULL) != CUDA_SUCCESS) /* makes the context */
        return NULL;
    struct handle *handle = calloc(1, sizeof *handle);
    if (!handle)
        return NULL;
    jmsim_count_heap((int64_t)sizeof *handle, 1);
    handle->cost = cost;
    handle->heap = cost_take(cost->n_heap_blocks, jmsim_count_heap);
    int error = 0;
    for (unsigned i = 0; i < MOST_DEVICE_BLOCKS && cost->device_bytes[i]; i++)
        error |= cudaMalloc(&handle->device[i], cost->device_bytes[i]);
    if (cost->pinned_bytes)
        error |= cudaMallocHost(&handle->pinned, cost->pinned_bytes);
    for (unsigned i = 0; i < cost->n_streams; i++)
        error |= cudaStreamCreateWithFlags(&handle->streams[i], 1);
    for (unsigned i = 0; i < cost->n_events; i++)
        error |= cudaEventCreateWithFlags(&handle->events[i], 2);
    if (cost->n_modules)
        error |= cuModuleLoadData(&handle->module, image);
    if (!error)
        return handle;
    handle_delete(handle);
    return NULL;
}

#endif
