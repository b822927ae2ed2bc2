// SPDX-License-Identifier: GPL-2.0-or-later
//
// The kinds of memory (what sort of memory an account holds) and the side of the board each counts for. The names are
// those of docs/trace-format.md.

#ifndef JM_KIND_H
#define JM_KIND_H

#include "base/compat.h"

typedef enum { SIDE_HOST, SIDE_DEVICE, SIDE_NONE } Side;

#define JM_KINDS(X)                                                                                                    \
    X(HEAP, "heap", SIDE_HOST)                                                                                         \
    X(HEAP_OVERHEAD, "heap-overhead", SIDE_HOST)                                                                       \
    X(STACK, "stack", SIDE_HOST)                                                                                       \
    X(ANON, "anon", SIDE_HOST)                                                                                         \
    X(FILE, "file", SIDE_HOST)                                                                                         \
    X(PINNED, "pinned", SIDE_HOST)                                                                                     \
    X(DEVICE, "device", SIDE_DEVICE)                                                                                   \
    X(ARRAY, "array", SIDE_DEVICE)                                                                                     \
    X(MANAGED, "managed", SIDE_DEVICE)                                                                                 \
    X(POOL, "pool", SIDE_DEVICE)                                                                                       \
    X(VMM, "vmm", SIDE_DEVICE)                                                                                         \
    X(DRIVER_HOST, "driver-host", SIDE_HOST)                                                                           \
    X(DRIVER, "driver", SIDE_DEVICE)                                                                                   \
    X(IMPORTED, "imported", SIDE_NONE)

#define JM_KIND_ENUM(id, name, side) KIND_##id,
typedef enum { JM_KINDS(JM_KIND_ENUM) N_KINDS } Kind;
#undef JM_KIND_ENUM

typedef UChar OwnerId; // stack/owner.h says which

const HChar *jm_kind_name(Kind kind);
Side jm_kind_side(Kind kind);

// Its bytes are those of resident pages, as of the last sample (pages.h). Stacks are too, unless --stacks=yes.
Bool jm_kind_is_sampled(Kind kind);

#endif
