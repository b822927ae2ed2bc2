// SPDX-License-Identifier: GPL-2.0-or-later
//
// Where object files are mapped. The core gives a mapping the first hole that is large enough, so where a library lies
// depends on what the program has allocated before; and a translation of its code holds for one address. So each object
// file gets the place that it had in the last run, if that is free.

#ifndef JM_PLACES_H
#define JM_PLACES_H

#include "base/compat.h"

// After every system call of the program.
void jm_places_after_syscall(UInt number, const UWord *args, SysRes res);

void jm_places_stats(void);
void jm_places_end(void);

#endif
