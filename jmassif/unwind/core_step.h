// SPDX-License-Identifier: GPL-2.0-or-later
//
// The core's unwinder, for two uses. It steps through code by tables that are outside the program's memory
// (.debug_frame, tables without an index) and that the core has read. And --check-unwinding=yes compares its whole
// stacks with ours. If configure found that the core's functions cannot be called, no step succeeds.

#ifndef JM_CORE_STEP_H
#define JM_CORE_STEP_H

#include "unwind/dwarf.h"

#if defined(JM_HAS_UNWINDER) && defined(TAKES_OVER_CORE_UNWINDER)
#define JM_ASKS_CORE
#endif

// The core's own VG_(get_StackTrace).
UInt jm_core_stack(ThreadId tid, Addr *ips, Addr *sps, UInt max);

// Record that the core has read an unwind table for the file that is mapped at this address.
void jm_core_knows_file(Addr inside);

// False if the core has no table for the address, so a step would fail.
Bool jm_core_may_know(Addr ip);

// Step from a frame to its caller by a table that the core has read; false if it cannot. `*ip` is a return address less
// one as in all stacks (unwind.h), and becomes the caller's. Afterwards only the registers that the core follows are
// known.
Bool jm_core_step(Registers *registers, Addr *ip);

#endif
