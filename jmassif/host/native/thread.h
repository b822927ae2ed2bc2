// SPDX-License-Identifier: GPL-2.0-or-later
//
// The recorder's lock and the program's threads, for the hooks that begin and end them.

#ifndef JM_NATIVE_THREAD_H
#define JM_NATIVE_THREAD_H

#include "host/native/hook.h"

typedef enum { NATIVE_NOT_BEGUN, NATIVE_RECORDS, NATIVE_HAS_ENDED } NativeState;
extern NativeState jm_native_state;

// Called at each event if it is set.
extern void (*jm_native_at_event)(void);

// Calls that were not recorded, as their thread was in the recorder already: from signal handlers.
extern ULong jm_native_n_missed;

void jm_native_lock(void);
void jm_native_unlock(void);

void jm_native_own_stack_start(void);
extern Addr jm_native_stack_end __attribute__((visibility("hidden")));

#define JM_NOT_BEGUN -1 // a kernel id that no thread has

// Under the lock. A record for a thread that is about to be made, its first event, and for one that was not made.
NativeThread *jm_native_new_thread(void);
void jm_native_thread_begins(NativeThread *t, const NativeRegisters *registers);
void jm_native_thread_not_begun(NativeThread *t);

// Report the end of threads that the kernel no longer has.
void jm_native_end_threads(void);

// In the child of a fork, whose thread holds the lock: it is the only one.
void jm_native_fork_in_child(void);

#endif
