// SPDX-License-Identifier: GPL-2.0-or-later
//
// Regions of the recorder's own memory, which are not the program's.

#ifndef JM_NATIVE_MEMORY_H
#define JM_NATIVE_MEMORY_H

#include "host/types.h"

typedef struct {
    Addr start, end;
} OwnRegion;

// In no order; valid until the next allocation.
const OwnRegion *jm_own_regions(UInt *n);

#endif
