// SPDX-License-Identifier: GPL-2.0-or-later
//
// Which system calls keep a program waiting. It may be killed while it waits, so what has not been told is to be told
// before.

#ifndef JM_WAITING_H
#define JM_WAITING_H

#include "base/compat.h"

// Whether the call, which is about to be made, may take as long as it likes. What would be ready at once is asked of
// the kernel.
Bool jm_waiting_is_likely(UInt number, const UWord *args);

#endif
