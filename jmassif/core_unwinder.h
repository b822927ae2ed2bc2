// SPDX-License-Identifier: GPL-2.0-or-later
//
// What is between the core's unwinder and ours. The core has unwind tables that are in no mapped memory (.debug_frame),
// so it is asked for what no mapped table covers.

#ifndef JM_CORE_UNWINDER_H
#define JM_CORE_UNWINDER_H

#include "dwarf.h"

#if defined(JM_HAS_UNWINDER) && defined(TAKES_OVER_CORE_UNWINDER)
#define JM_ASKS_CORE
#endif

// From a frame to its caller's, by a table that the core has read. `*ip` is as stacks are told: a call's return address
// less one; becomes the caller's return address. Of the registers those that the core follows are known then.
Bool jm_core_step(Registers *registers, Addr *ip);

#endif
