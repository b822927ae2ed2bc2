// SPDX-License-Identifier: GPL-2.0-or-later
//
// Alignment of the program's registers in memory (x86-64).

#ifndef JM_GUEST_STATE_H
#define JM_GUEST_STATE_H

#include "host/valgrind/compat.h"

// Print the alignment of the vector registers, or that it is not known.
void jm_guest_stats(void);

#endif
