// SPDX-License-Identifier: GPL-2.0-or-later
//
// By which signal the program dies.

#ifndef JM_KILLED_H
#define JM_KILLED_H

#include "base/compat.h"

// Calls `told` with the signal's number right before the process dies of it. That is after the tool's end: the core
// has let go of its threads, but the recorder's own memory and files are as they were. False if it will not be told.
Bool jm_on_killed(void (*told)(UInt signal));

#endif
