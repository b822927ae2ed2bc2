// SPDX-License-Identifier: GPL-2.0-or-later
//
// Descriptors of the program above the core's limit (host_allow_descriptor).

#ifndef JM_DESCRIPTORS_H
#define JM_DESCRIPTORS_H

#include "host/types.h"

// Call around every system call of the program.
void jm_descriptors_before_syscall(UInt number, const UWord *args);
void jm_descriptors_after_syscall(UInt number, const UWord *args, Bool has_failed);

#endif
