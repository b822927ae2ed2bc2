// SPDX-License-Identifier: GPL-2.0-or-later
//
// The recorder's lock and the program's threads, for the hooks that begin and end them.

#ifndef JM_NATIVE_THREAD_H
#define JM_NATIVE_THREAD_H

#include "host/native/hook.h"

typedef enum {
    NATIVE_NOT_BEGUN,
    NATIVE_IS_OFF, // until the program begins the recording (recording.c)
    NATIVE_RECORDS,
    NATIVE_HAS_ENDED
} NativeState;

// A page of its own, which is zero in a child by a fork that no hook sees (_Fork, clone): it records nothing.
typedef union {
    NativeState state;
    UChar page[64 << 10];
} NativeStatePage;
extern NativeStatePage jm_native_state_page __attribute__((aligned(64 << 10)));
#define jm_native_state (jm_native_state_page.state)

// Functions that libraries have found before the recording begins are recorded, too.
static inline Bool jm_native_covers_functions(void)
{
    return jm_native_state == NATIVE_RECORDS || jm_native_state == NATIVE_IS_OFF;
}

void jm_native_state_start(void);

// Called at each event if it is set.
extern void (*jm_native_at_event)(void);

void jm_native_lock(Int kernel_id);      // of this thread
Bool jm_native_lock_soon(Int kernel_id); // False if another thread has it for a tenth of a second
void jm_native_unlock(void);
Bool jm_native_is_locked(void);

// Begin an event of a thread that has no record yet; `begins` gives it one. False if nothing is recorded.
Bool jm_native_begin_newcomer(void (*begins)(void *job), void *job);

void jm_native_own_stack_start(void);
extern Addr jm_native_stack_end __attribute__((visibility("hidden")));

#define JM_NOT_BEGUN -1 // a kernel id that no thread has

// Under the lock. A record for a thread that is about to be made, its first event, and for one that was not made.
NativeThread *jm_native_new_thread(void);
void jm_native_thread_begins(NativeThread *t, const NativeRegisters *registers);
void jm_native_thread_not_begun(NativeThread *t);

// Report the end of threads that the kernel no longer has.
void jm_native_end_threads(void);

// The end of an event for a thread that has the lock no more.
void jm_native_leave_unlocked(NativeThread *t);

// A fork begins and ends in an event. False, also in the child, if the lock was given to others meanwhile.
void jm_native_fork_begins(void);
Bool jm_native_fork_ended(void);

// In the child of a fork, whose thread holds the lock: it is the only one.
void jm_native_fork_in_child(void);

#endif
