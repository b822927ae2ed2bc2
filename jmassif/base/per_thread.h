// SPDX-License-Identifier: GPL-2.0-or-later
//
// State that a module keeps per thread. The core reuses the number of a thread that has ended, and a fork ends all
// threads but its caller, without notice; a module that missed either would take a new thread for the old one. So the
// records are kept here: when a thread ends, each module is notified and the record is zeroed for the next thread.

#pragma once

#include "host/host.h"

typedef enum {
    THREAD_EXITED,
    PROGRAM_ENDED,  // the thread ends with the program, inside any call
    LEFT_BY_A_FORK, // in the child of a fork: the thread exists only in the parent
} ThreadEnd;

typedef struct PerThread {
    const HChar *name; // cost centre of Valgrind's allocator
    SizeT record_bytes;
    void (*ended)(ThreadId tid, void *record, ThreadEnd how); // called before the record is zeroed; may be NULL
    void *records; // host_n_threads() of them; NULL until the first is requested
    struct PerThread *next;
} PerThread;

#define JM_PER_THREAD(name, type, ended)                                                                               \
    {                                                                                                                  \
        (name), sizeof(type), (ended), NULL, NULL                                                                      \
    }

void jm_per_thread_start(PerThread *kept);

static inline void *jm_per_thread_records(PerThread *kept)
{
    if (UNLIKELY(!kept->records))
        jm_per_thread_start(kept);
    return kept->records;
}

// Return whether records exist; if not, all would be zero.
static inline Bool jm_per_thread_has_any(const PerThread *kept)
{
    return kept->records != NULL;
}

// Pointer to a thread's record; its address never changes.
#define JM_OF_THREAD(kept, type, tid) (&((type *)jm_per_thread_records(kept))[tid])

// Call `each` with every thread's record, zero ones included. Do nothing if no record exists.
void jm_per_thread_each(const PerThread *kept, void (*each)(void *record));

// Zero all records.
void jm_per_thread_forget(PerThread *kept);

// For `ended`: free what the first field of the record points to.
void jm_per_thread_free(ThreadId tid, void *record, ThreadEnd how);

// Call when a thread has ended.
void jm_per_thread_end(ThreadId tid, ThreadEnd how);

// Call in the child of a fork; `tid` is the thread that called fork.
void jm_per_thread_after_fork_in_child(ThreadId tid);
