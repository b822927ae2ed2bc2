// SPDX-License-Identifier: GPL-2.0-or-later
//
// Calls from a folder to one below it. Each has one receiver, which recorder.c names.

#ifndef JM_HOOKS_H
#define JM_HOOKS_H

#include "host/types.h"

struct DeviceBlock;

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
} RecorderHooks;

extern const RecorderHooks jm_hooks;

#endif
