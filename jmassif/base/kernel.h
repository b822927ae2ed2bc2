// SPDX-License-Identifier: GPL-2.0-or-later
//
// System calls that the core does not offer to tools.

#ifndef JM_KERNEL_H
#define JM_KERNEL_H

#include "base/compat.h"

// Return the kernel's result; a negative one is -errno. -ENOSYS on architectures other than x86-64 and arm64.
Long jm_kernel_call(UWord number, UWord a1, UWord a2, UWord a3, UWord a4, UWord a5);

// Return whether the word at the address can be read; False if a read would raise a signal.
Bool jm_kernel_can_read(Addr address);

// Release whole pages: anonymous or modified ones lose their content, unmodified file pages are read again at the next
// access.
void jm_kernel_let_go(Addr start, SizeT bytes);

#endif
