/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests from a profiled program to jmassif. Outside it, and under Valgrind's other tools, every macro does nothing
 * and costs a few instructions. No request returns an error, or changes the program's memory (except JMASSIF_USAGE's
 * array).
 *
 *     #include <jmassif/jmassif.h>
 *     JMASSIF_REGION_BEGIN("load weights");
 *     …
 *     JMASSIF_REGION_END("load weights");
 *
 * Texts are C strings; jmassif copies their first 4095 bytes. All sizes are in bytes.
 *
 * If your own caching allocator gets large segments from CUDA and hands out parts of them, announce the parts. The
 * report then separates tensors from cache, as for PyTorch:
 *
 *     JMASSIF_TENSOR(address, n_bytes);     when it hands out a part
 *     JMASSIF_TENSOR_FREED(address);        when the part is returned
 *
 * Languages without macros (Python through ctypes) find functions in libjmassif.so: jmassif_snapshot(),
 * jmassif_mark(text), jmassif_stage(text), jmassif_usage(bytes), jmassif_region_begin(text), jmassif_region_end(text),
 * jmassif_tensor(address, n_bytes), jmassif_tensor_freed(address).
 */

#ifndef JMASSIF_H
#define JMASSIF_H

#include <valgrind/valgrind.h>

enum {
    JMASSIF_REQUEST_SNAPSHOT = 0x4a4d0000, /* a tool's own requests begin with two letters: 'J' 'M' */
    JMASSIF_REQUEST_MARK,
    JMASSIF_REQUEST_REGION_BEGIN,
    JMASSIF_REQUEST_REGION_END,
    JMASSIF_REQUEST_TENSOR,
    JMASSIF_REQUEST_TENSOR_FREED,
    JMASSIF_REQUEST_STAGE,
    JMASSIF_REQUEST_USAGE
};

/* The recorder that needs no Valgrind is a library in the process, and has this function. */
#ifdef __cplusplus
extern "C"
#else
extern
#endif
    __attribute__((weak)) void
    jmassif_request(unsigned long request, unsigned long a, unsigned long b);

#define JMASSIF_REQUEST_(request, a, b)                                                                                \
    do {                                                                                                               \
        if (jmassif_request)                                                                                           \
            jmassif_request(request, (unsigned long)(a), (unsigned long)(b));                                          \
        else                                                                                                           \
            VALGRIND_DO_CLIENT_REQUEST_STMT(request, a, b, 0, 0, 0);                                                   \
    } while (0)

/* Take a snapshot now, and write everything recorded so far to the trace. */
#define JMASSIF_SNAPSHOT() JMASSIF_REQUEST_(JMASSIF_REQUEST_SNAPSHOT, 0, 0)

/* Set a mark named `text` on the timeline, with a snapshot. */
#define JMASSIF_MARK(text) JMASSIF_REQUEST_(JMASSIF_REQUEST_MARK, (text), 0)

/* Set a mark and restart the peaks: they cover the time up to the next stage. Begin each test, epoch or request with a
 * stage to get its exact peaks. The run's peaks are the largest of its stages. */
#define JMASSIF_STAGE(text) JMASSIF_REQUEST_(JMASSIF_REQUEST_STAGE, (text), 0)

/* Fill `bytes`, an array of five size_t: current host and device memory, then the peaks of host, of device and of their
 * sum since the last stage. Outside jmassif, or if the array is not writable, nothing is written: initialise it. */
#define JMASSIF_USAGE(bytes) JMASSIF_REQUEST_(JMASSIF_REQUEST_USAGE, (bytes), 0)

/* Begin and end a named region of the calling thread's timeline. The end closes the innermost open region with the same
 * name, and is ignored if there is none. */
#define JMASSIF_REGION_BEGIN(text) JMASSIF_REQUEST_(JMASSIF_REQUEST_REGION_BEGIN, (text), 0)
#define JMASSIF_REGION_END(text)   JMASSIF_REQUEST_(JMASSIF_REQUEST_REGION_END, (text), 0)

/* Announce that part of a block from CUDA (device, pinned, managed or mapped memory) was handed out, or returned. The
 * block then has the owner `cache`, the part `tensor`. Parts outside such blocks, or overlapping others, are ignored.
 */
#define JMASSIF_TENSOR(address, n_bytes) JMASSIF_REQUEST_(JMASSIF_REQUEST_TENSOR, (address), (n_bytes))
#define JMASSIF_TENSOR_FREED(address)    JMASSIF_REQUEST_(JMASSIF_REQUEST_TENSOR_FREED, (address), 0)

#endif
