// SPDX-License-Identifier: GPL-2.0-or-later
//
// Condition codes that nothing reads. VEX knows of one superblock at a time, so most end with four stores of what their
// last arithmetic left, a fifth of their code; and mostly the code that follows sets all condition codes anew.

#ifndef JM_DEAD_FLAGS_H
#define JM_DEAD_FLAGS_H

#include "base/compat.h"

// Takes the stores out of a superblock where the code at each place that it leads to sets all condition codes before it
// reads one; on x86-64, for code in files. The code that was looked at is added to `extents`, of which the superblock
// is made, as far as there is room: it is valid as long as they are what they are.
void jm_dead_flags_leave_out(IRSB *block, VexGuestExtents *extents);

#endif
