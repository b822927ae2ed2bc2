// SPDX-License-Identifier: GPL-2.0-or-later
//
// Load addresses of object files. The core gives a mapping the first hole that is large enough, so a library's address
// depends on earlier allocations; but a translation of its code holds for one address. So each object file has an
// address of its own.

#ifndef JM_PLACES_H
#define JM_PLACES_H

#include "host/valgrind/compat.h"

// Call after every system call of the program.
void jm_places_after_syscall(UInt number, const UWord *args, SysRes res);

#endif
