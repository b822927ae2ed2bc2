// SPDX-License-Identifier: GPL-2.0-or-later
//
// The stack source (--stacks=yes): counts the used bytes of the threads' stacks at every move of the stack pointer. Off
// by default, since its cost is proportional to the number of calls.

#ifndef JM_STACK_MEMORY_H
#define JM_STACK_MEMORY_H

#include "host/types.h"

void jm_stack_memory_init(void);

// Any stack has grown or shrunk.
void jm_stack_memory_grown(SizeT bytes);
void jm_stack_memory_shrunk(SizeT bytes);

#endif
