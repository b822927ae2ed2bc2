// SPDX-License-Identifier: GPL-2.0-or-later
//
// Calls from a folder to one below it. Each has one receiver, which recorder.c names.

#pragma once

#include "host/types.h"

struct DeviceBlock;

// A copy in memory, by the CUDA API. A span is longer than the bytes where rows lie apart.
typedef struct {
    Addr to, from; // `from` 0: not from host memory
    ULong to_span, from_span, bytes;
    Bool is_of_unknown_side; // either address may be of host or of device memory
} CopiedBytes;

#define JM_LEAST_COPY ((ULong)64 << 10) // smaller copies, and heap blocks, are not of interest

typedef struct {
    // An object file is written to the trace; its code begins at `code`. `soname` may be NULL. The names hold during
    // the call.
    void (*object_found)(const HChar *soname, const HChar *path, Addr code);

    // Passes have ended at a mark, a usage query or the program's end: observe roles on the program's objects.
    void (*observe_roles)(void);

    // An out-of-memory event is recorded: add figures of the sources.
    void (*oom_recorded)(UInt event);

    // A dlopen is about to end, its scope is still open: measure the library's mappings.
    void (*library_loaded)(ThreadId tid);

    // A block ends while tensors hold a part of it.
    void (*segment_ended)(struct DeviceBlock *block);

    // Bytes were copied, host memory was registered (`bytes` 0: unregistered), a large heap block begins, and memory of
    // any kind ends (copies/copies.h).
    void (*copied)(ThreadId tid, const CopiedBytes *copied);
    void (*registered)(ThreadId tid, Addr start, ULong bytes);
    void (*large_block)(Addr start, ULong bytes);
    void (*range_ended)(Addr start, ULong bytes);
} RecorderHooks;

extern const RecorderHooks jm_hooks;
