// SPDX-License-Identifier: GPL-2.0-or-later
//
// The core's unwinder beside ours (host/host.h, "threads").

#ifndef JM_UNWINDER_H
#define JM_UNWINDER_H

#include "host/valgrind/compat.h"

// Registers that the core follows from frame to frame, with the layout of its D3UnwindRegs.
typedef struct {
    Addr ip, sp;
#if defined(VGA_arm64)
    Addr link;
#endif
    Addr fp;
} CoreRegisters;

// Record that the core has read an unwind table for the file that is mapped at this address.
void jm_core_knows_file(Addr inside);

#endif
