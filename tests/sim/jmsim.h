/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The simulated Jetson's own figures, exported by its libcuda.so.1. They are counted where the
 * simulation hands memory out, by nobody else's rules, so that a test can hold a profiler's
 * ledger against them to the byte. */
#ifndef JMSIM_H
#define JMSIM_H

#include <stdint.h>

#include "cuda_abi.h"

struct jmsim_amount {
    uint64_t bytes, blocks;
};

/* All live now, in the whole process, what CUDA's own libraries allocated included. */
struct jmsim_stats {
    /* At the API: what callers asked for (pitched memory: pitch times rows, as documented). */
    struct jmsim_amount device;   /* cuMemAlloc, cuMemAllocPitch */
    struct jmsim_amount array;    /* arrays and mipmapped arrays, all levels */
    struct jmsim_amount managed;  /* cuMemAllocManaged */
    struct jmsim_amount pinned;   /* cuMemAllocHost, cuMemHostAlloc; not cuMemHostRegister */
    struct jmsim_amount pool;     /* cuMemAllocAsync, cuMemAllocFromPoolAsync */
    struct jmsim_amount vmm;      /* cuMemCreate, until the last handle and mapping are gone */
    struct jmsim_amount imported; /* opened IPC handles, external memory, mapped imported handles */
    /* What the pools' attributes say, summed over pools; used counts 512-byte granules. */
    uint64_t pool_used_bytes;
    uint64_t pool_reserved_bytes;
    /* Below the API. */
    uint64_t context_device_bytes; /* contexts, modules, streams, events */
    uint64_t slab_reserved_bytes;  /* whole slabs, the small device blocks in them included */
    uint64_t board_used_bytes;     /* everything taken from the board */
    uint64_t board_bytes;          /* what the board has */
    /* malloc calls of the simulated libraries themselves, as asked for. */
    struct jmsim_amount heap;
};

void jmsim_stats(struct jmsim_stats *stats);

/* Makes a handle as another process would have exported it for a block of that size. */
void jmsim_foreign_ipc_handle(CUipcMemHandle *handle, size_t bytes);

/* For the simulated libraries: adds what they malloc (or, negative, free) to stats.heap. */
void jmsim_count_heap(int64_t bytes, int64_t blocks);

#endif
