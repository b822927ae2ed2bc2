/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the simulated libraries spend on themselves, and how. Real CUDA libraries take host heap
 * and device memory when a context, a module or a handle is made, and a profiler must show it; the
 * figures here are of the order that Jetson boards show, round, and the same on every run. Heap
 * blocks are chained through their own first bytes, so that no other memory keeps track of them. */
#ifndef JMSIM_COSTS_H
#define JMSIM_COSTS_H

#include <stdint.h>
#include <stdlib.h>

#define KIB(n) ((size_t)(n) << 10)
#define MIB(n) ((size_t)(n) << 20)

/* With -DJMSIM_COSTS the figures are those of a release in jetpacks/. */
#ifdef JMSIM_COSTS
#include JMSIM_COSTS
#else

/* Host heap, in blocks of the five sizes below, 15,004 bytes a block on average. */
enum {
    INIT_HEAP_BLOCKS = 60,
    CONTEXT_HEAP_BLOCKS = 600,
    MODULE_HEAP_BLOCKS = 20,
    STREAM_HEAP_BLOCKS = 4,
    EVENT_HEAP_BLOCKS = 1,
    RUNTIME_HEAP_BLOCKS = 10,
};

#define CONTEXT_DEVICE_BYTES MIB(48)
#define MODULE_DEVICE_BYTES  MIB(2)
#define STREAM_DEVICE_BYTES  KIB(64)
#define EVENT_DEVICE_BYTES   KIB(4)

/* Handles: members of struct handle_cost in libraries/library.h. */
#define CUDNN_HANDLE                                                                                                   \
    .device_bytes = {KIB(1536), KIB(64), 4096}, .pinned_bytes = KIB(8), .n_streams = 1, .n_events = 2, .n_modules = 1, \
    .n_heap_blocks = 150
#define CUBLAS_HANDLE                                                                                                  \
    .device_bytes = {MIB(4), KIB(64)}, .pinned_bytes = KIB(4), .n_events = 2, .n_modules = 1, .n_heap_blocks = 60

#endif

struct cost {
    struct cost *next;
    size_t bytes;
};

static inline struct cost *cost_take(unsigned n_blocks, void (*count)(int64_t, int64_t))
{
    static const size_t sizes[] = {56, 240, 1000, 8188, 65536};
    struct cost *all = NULL;
    for (unsigned i = 0; i < n_blocks; i++) {
        size_t bytes = sizes[i % 5];
        struct cost *one = malloc(bytes);
        if (!one)
            break;
        one->next = all;
        one->bytes = bytes;
        all = one;
        count((int64_t)bytes, 1);
    }
    return all;
}

static inline void cost_give(struct cost *all, void (*count)(int64_t, int64_t))
{
    while (all) {
        struct cost *one = all;
        all = one->next;
        count(-(int64_t)one->bytes, -1);
        free(one);
    }
}

#endif
