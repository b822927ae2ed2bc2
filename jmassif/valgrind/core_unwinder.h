// SPDX-License-Identifier: GPL-2.0-or-later
//
// What is between the core's unwinder and ours. The core reads the unwind tables of all object files as they are
// mapped, which for large libraries takes seconds and hundreds of megabytes. It need not, if it never unwinds: so its
// reading of tables that ours finds in the program's memory is left out, and whoever in the core asks for a stack (what
// it prints when a program crashes) gets ours. What it still reads (.debug_frame, tables without an index) it is asked
// for. Where configure found that these functions cannot be taken over, the core does as ever.

#ifndef JM_CORE_UNWINDER_H
#define JM_CORE_UNWINDER_H

#include "stack/dwarf.h"

#if defined(JM_HAS_UNWINDER) && defined(TAKES_OVER_CORE_UNWINDER)
#define JM_ASKS_CORE
#endif

// The core's own VG_(get_StackTrace).
UInt jm_core_stack(ThreadId tid, Addr *ips, Addr *sps, UInt max);

// From a frame to its caller's, by a table that the core has read. `*ip` is as stacks are told: a call's return address
// less one; becomes the caller's return address. Of the registers those that the core follows are known then.
Bool jm_core_step(Registers *registers, Addr *ip);

#endif
