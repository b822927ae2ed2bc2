// SPDX-License-Identifier: GPL-2.0-or-later
//
// Kinds of memory that an account can hold, and the memory space that each counts for: host, device, or neither. The
// names are those of docs/trace-format.md.

#pragma once

#include "host/types.h"

typedef enum { SIDE_HOST, SIDE_DEVICE, SIDE_NONE } Side;

#define JM_KINDS(X) /* id, name, memory space, is_sampled */                                                           \
    X(HEAP, "heap", SIDE_HOST, False)                                                                                  \
    X(HEAP_OVERHEAD, "heap-overhead", SIDE_HOST, False)                                                                \
    X(STACK, "stack", SIDE_HOST, True)                                                                                 \
    X(ANON, "anon", SIDE_HOST, True)                                                                                   \
    X(FILE, "file", SIDE_HOST, True)                                                                                   \
    X(PINNED, "pinned", SIDE_HOST, False)                                                                              \
    X(DEVICE, "device", SIDE_DEVICE, False)                                                                            \
    X(ARRAY, "array", SIDE_DEVICE, False)                                                                              \
    X(MANAGED, "managed", SIDE_DEVICE, False)                                                                          \
    X(POOL, "pool", SIDE_DEVICE, False)                                                                                \
    X(VMM, "vmm", SIDE_DEVICE, False)                                                                                  \
    X(DRIVER_HOST, "driver-host", SIDE_HOST, False)                                                                    \
    X(DRIVER, "driver", SIDE_DEVICE, False)                                                                            \
    X(IMPORTED, "imported", SIDE_NONE, False)

#define JM_KIND_ENUM(id, name, side, is_sampled) KIND_##id,
typedef enum { JM_KINDS(JM_KIND_ENUM) N_KINDS } Kind;
#undef JM_KIND_ENUM

typedef UChar OwnerId; // see attribution/owner.h

typedef struct {
    const HChar *name;
    Side side;
    Bool is_sampled; // its bytes are resident pages as of the last sample (pages/pages.h)
} KindProperties;
extern const KindProperties jm_kinds[N_KINDS];

#define jm_kind_name(kind) (jm_kinds[kind].name)
#define jm_kind_side(kind) (jm_kinds[kind].side)
