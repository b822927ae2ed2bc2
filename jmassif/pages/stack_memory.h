// SPDX-License-Identifier: GPL-2.0-or-later
//
// The stack source (--stacks=yes): how much of the threads' stacks is in use, followed at every move of the stack
// pointer. It costs time in proportion to the calls made, so it is off by default.

#ifndef JM_STACK_MEMORY_H
#define JM_STACK_MEMORY_H

#include "base/compat.h"

// Registers for stack events. Must be called before the first translation.
void jm_stack_memory_init(void);

#endif
