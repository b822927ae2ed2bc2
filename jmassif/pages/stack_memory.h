// SPDX-License-Identifier: GPL-2.0-or-later
//
// The stack source (--stacks=yes): counts the used bytes of the threads' stacks at every move of the stack pointer. Off
// by default, since its cost is proportional to the number of calls.

#ifndef JM_STACK_MEMORY_H
#define JM_STACK_MEMORY_H

#include "base/compat.h"

// Registers for stack events. Call before the first translation.
void jm_stack_memory_init(void);

#endif
