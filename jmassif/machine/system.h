// SPDX-License-Identifier: GPL-2.0-or-later
//
// The machine's memory: the kernel's figures of the machine, of the program's control group and of the process, written
// with every snapshot. It also raises the alarm: when little memory is left, a snapshot is due at once, since a SIGKILL
// may come next.

#pragma once

#include "host/types.h"

// Finds the control group with the smallest limit.
void jm_system_init(void);

// Writes the figures that changed since they were last written.
void jm_system_write(ULong time);

// True if so little memory is left (--low-memory) that a snapshot is due. Cheap: reads the figures at most once per 20
// ms. `now_ms` is in milliseconds.
Bool jm_system_is_short(ULong now_ms);

// A forked child's trace starts empty: forgets what was written.
void jm_system_after_fork_in_child(void);
