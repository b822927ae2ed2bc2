// SPDX-License-Identifier: GPL-2.0-or-later
//
// The signal that kills the program.

#ifndef JM_KILLED_H
#define JM_KILLED_H

#include "host/valgrind/compat.h"

// Set the function to call with the signal's number right before the process dies of it. The tool has ended by then:
// the core has released its threads, but the recorder's memory and files are intact.
void jm_on_killed(void (*told)(UInt signal));

#endif
