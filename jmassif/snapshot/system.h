// SPDX-License-Identifier: GPL-2.0-or-later
//
// The machine around the program: what the kernel says of its memory, of the program's control group and of the
// process, with every snapshot. And the alarm: when little is left, a snapshot is due at once, for the next thing to
// come may be a SIGKILL.

#ifndef JM_SYSTEM_H
#define JM_SYSTEM_H

#include "base/compat.h"

// Finds out which figures this machine has.
void jm_system_init(void);

// Writes the figures that have changed since they were last written.
void jm_system_write(ULong time);

// Whether memory has become so short (--low-memory) that a snapshot is due. Looks at most every few milliseconds, so it
// may be asked often.
Bool jm_system_is_short(ULong now_ms);

// The child of a fork has its own trace, in which nothing is written yet.
void jm_system_after_fork_in_child(void);

#endif
