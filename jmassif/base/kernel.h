// SPDX-License-Identifier: GPL-2.0-or-later
//
// Calls of the kernel for which the core has nothing that tools may use.

#ifndef JM_KERNEL_H
#define JM_KERNEL_H

#include "base/compat.h"

// What the kernel returns: negative, an error's number.
Long jm_kernel_call(UWord number, UWord a1, UWord a2, UWord a3, UWord a4, UWord a5);

// Whether reading the word at the address would be answered by a signal: False if so.
Bool jm_kernel_can_read(Addr address);

// Lets go of whole pages: what is written in memory of nobody's file is lost, what is a file's comes back when it is
// looked at.
void jm_kernel_let_go(Addr start, SizeT bytes);

#endif
