// SPDX-License-Identifier: GPL-2.0-or-later
//
// What we ask the core of a stack. It has read the tables that are not found in the program's memory (.debug_frame,
// tables without an index), and knows a step by them; and --check-unwinding=yes compares whole stacks with its own.
// Where configure found that its functions cannot be called, it knows no step.

#ifndef JM_CORE_STEP_H
#define JM_CORE_STEP_H

#include "stack/dwarf.h"

#if defined(JM_HAS_UNWINDER) && defined(TAKES_OVER_CORE_UNWINDER)
#define JM_ASKS_CORE
#endif

// The core's own VG_(get_StackTrace).
UInt jm_core_stack(ThreadId tid, Addr *ips, Addr *sps, UInt max);

// The core has read a table for the code of the file that is mapped there.
void jm_core_knows_file(Addr inside);

// Whether the core may have a table for the address; where it has none it need not be asked.
Bool jm_core_may_know(Addr ip);

// From a frame to its caller's, by a table that the core has read. `*ip` is as stacks are told: a call's return address
// less one; becomes the caller's return address. Of the registers those that the core follows are known then.
Bool jm_core_step(Registers *registers, Addr *ip);

#endif
