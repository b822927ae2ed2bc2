// SPDX-License-Identifier: GPL-2.0-or-later
//
// The process that is recorded: its start and end, its arguments, descriptors of the recorder's own.

#ifndef JM_NATIVE_PROCESS_H
#define JM_NATIVE_PROCESS_H

#include "host/types.h"

// Register what runs at fork and exit (calls.c).
void jm_native_watch_process(void);

// Record that a signal, of which this is the number, ends the program (calls.c).
void jm_native_killed(void *signal);

// Let libraries that are loaded from now on call malloc and its kin without a hook (malloc.c).
void jm_native_pass_heap_by(void);

// Record as freed what the C and C++ libraries keep until the end (malloc.c).
void jm_native_end_library_blocks(void);

// False in a child that shares this memory until it executes another program (vfork).
Bool jm_native_is_process(void);
void jm_native_process_forked(void); // in the child

#define MAX_OWN_DESCRIPTOR 1024u // exclusive
Bool jm_native_is_own_descriptor(Int fd);

// The program puts another file there.
void jm_native_lose_descriptor(Int fd);

#endif
