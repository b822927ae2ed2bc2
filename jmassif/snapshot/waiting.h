// SPDX-License-Identifier: GPL-2.0-or-later
//
// Which system calls keep a program waiting. It may be killed while it waits, so what has not been told is to be told
// before.

#ifndef JM_WAITING_H
#define JM_WAITING_H

#include "base/compat.h"

// Shorter waits are over before anybody misses what has not been told.
#define LONG_WAIT_MS 100

// Whether the call, which is about to be made, will take that long unless a signal comes: a sleep.
Bool jm_waiting_is_certain(UInt number, const UWord *args);

// Whether it may take as long as it likes. What would be ready at once is asked of the kernel. Not for sleeps.
Bool jm_waiting_is_likely(UInt number, const UWord *args);

#endif
