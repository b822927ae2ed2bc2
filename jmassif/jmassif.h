/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Talk to jmassif from the program that it profiles. Outside Valgrind, and under other tools, every macro does nothing
 * at the cost of a few instructions.
 *
 *     #include <jmassif/jmassif.h>
 *     JMASSIF_REGION_BEGIN("load weights");
 *     …
 *     JMASSIF_REGION_END("load weights");
 *
 * A caching allocator of your own asks CUDA for large segments and hands out parts of them. Let it say so, and the
 * report has tensors and cache, as it has for PyTorch:
 *
 *     JMASSIF_TENSOR(address, n_bytes);     when it hands a part out
 *     JMASSIF_TENSOR_FREED(address);        when it takes it back
 *
 * Programs that cannot use macros (Python through ctypes) find functions of the same names, in lower case, in
 * libjmassif.so: jmassif_snapshot(), jmassif_mark(text), jmassif_stage(text), jmassif_usage(bytes),
 * jmassif_region_begin(text), jmassif_region_end(text), jmassif_tensor(address, n_bytes),
 * jmassif_tensor_freed(address).
 */

#ifndef JMASSIF_H
#define JMASSIF_H

#include <valgrind/valgrind.h>

enum {
    VG_USERREQ__JMASSIF_SNAPSHOT = VG_USERREQ_TOOL_BASE('J', 'M'),
    VG_USERREQ__JMASSIF_MARK,
    VG_USERREQ__JMASSIF_REGION_BEGIN,
    VG_USERREQ__JMASSIF_REGION_END,
    VG_USERREQ__JMASSIF_TENSOR,
    VG_USERREQ__JMASSIF_TENSOR_FREED,
    VG_USERREQ__JMASSIF_STAGE,
    VG_USERREQ__JMASSIF_USAGE
};

/* Take a snapshot now and write everything recorded so far to the trace. */
#define JMASSIF_SNAPSHOT() VALGRIND_DO_CLIENT_REQUEST_STMT(VG_USERREQ__JMASSIF_SNAPSHOT, 0, 0, 0, 0, 0)

/* Set a named mark on the timeline, with a snapshot. `text` is a C string. */
#define JMASSIF_MARK(text) VALGRIND_DO_CLIENT_REQUEST_STMT(VG_USERREQ__JMASSIF_MARK, (text), 0, 0, 0, 0)

/* Like a mark; and from here on peaks are those of what follows, up to the next stage. A test, an epoch or a request
 * that begins with one has exact peaks of its own. The run's are the largest of its stages'. */
#define JMASSIF_STAGE(text) VALGRIND_DO_CLIENT_REQUEST_STMT(VG_USERREQ__JMASSIF_STAGE, (text), 0, 0, 0, 0)

/* Read the ledger into an array of five words: bytes of host and of device memory now, and the peaks of host, of device
 * and of both together since the last stage began. Outside jmassif the array stays as it is. */
#define JMASSIF_USAGE(bytes) VALGRIND_DO_CLIENT_REQUEST_STMT(VG_USERREQ__JMASSIF_USAGE, (bytes), 0, 0, 0, 0)

/* A named region of the timeline. Regions nest, per thread; the end names the region it ends. */
#define JMASSIF_REGION_BEGIN(text) VALGRIND_DO_CLIENT_REQUEST_STMT(VG_USERREQ__JMASSIF_REGION_BEGIN, (text), 0, 0, 0, 0)
#define JMASSIF_REGION_END(text)   VALGRIND_DO_CLIENT_REQUEST_STMT(VG_USERREQ__JMASSIF_REGION_END, (text), 0, 0, 0, 0)

/* Part of a block from CUDA (device, pinned, managed or mapped memory) is handed out, or taken back. The block becomes
 * the owner `cache`'s, the part `tensor`'s. What lies in no such block, or overlaps others, is ignored. */
#define JMASSIF_TENSOR(address, n_bytes)                                                                               \
    VALGRIND_DO_CLIENT_REQUEST_STMT(VG_USERREQ__JMASSIF_TENSOR, (address), (n_bytes), 0, 0, 0)
#define JMASSIF_TENSOR_FREED(address)                                                                                  \
    VALGRIND_DO_CLIENT_REQUEST_STMT(VG_USERREQ__JMASSIF_TENSOR_FREED, (address), 0, 0, 0, 0)

#endif
