/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the simulated JetPack 5.1.2 spends where it differs from costs.h: invented figures, so that a
 * comparison with the older one has something to find on the host and on the device. */

enum {
    INIT_HEAP_BLOCKS = 60,
    CONTEXT_HEAP_BLOCKS = 745,
    MODULE_HEAP_BLOCKS = 35,
    STREAM_HEAP_BLOCKS = 4,
    EVENT_HEAP_BLOCKS = 1,
    RUNTIME_HEAP_BLOCKS = 10,
};

#define CONTEXT_DEVICE_BYTES MIB(48)
#define MODULE_DEVICE_BYTES  MIB(2)
#define STREAM_DEVICE_BYTES  KIB(64)
#define EVENT_DEVICE_BYTES   KIB(4)

#define CUDNN_HANDLE                                                                                                   \
    .device_bytes = {MIB(3), KIB(64), 4096}, .pinned_bytes = KIB(8), .n_streams = 1, .n_events = 2, .n_modules = 1,    \
    .n_heap_blocks = 240
#define CUBLAS_HANDLE                                                                                                  \
    .device_bytes = {MIB(8), KIB(64)}, .pinned_bytes = KIB(4), .n_events = 2, .n_modules = 1, .n_heap_blocks = 60
