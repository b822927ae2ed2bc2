// SPDX-License-Identifier: GPL-2.0-or-later
//
// What a module keeps of each thread. The core gives a thread's number to another one when it has ended, and a fork
// ends all threads but the one that called it, without a word: a module that forgot about either would take a new
// thread for the old one. So the records are kept here, each is told of its thread's end and is zero for the next one.

#ifndef JM_PER_THREAD_H
#define JM_PER_THREAD_H

#include "base/compat.h"

typedef enum {
    THREAD_EXITED,
    PROGRAM_ENDED,  // the thread ends with it, inside whatever it is in
    LEFT_BY_A_FORK, // in the child of a fork: the thread is its parent's alone
} ThreadEnd;

typedef struct PerThread {
    const HChar *name; // cost centre of Valgrind's allocator
    SizeT record_bytes;
    void (*ended)(ThreadId tid, void *record, ThreadEnd how); // before the record is zeroed; NULL: needs not be told
    void *records;                                            // VG_N_THREADS of them; NULL: nobody has asked for one
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

// Whether there are records: else all that could be asked for are zero.
static inline Bool jm_per_thread_has_any(const PerThread *kept)
{
    return kept->records != NULL;
}

// A thread's record. Its address never changes.
#define JM_OF_THREAD(kept, type, tid) (&((type *)jm_per_thread_records(kept))[tid])

// Calls `each` with every thread's record, also those that are zero. With none if nobody has asked for one.
void jm_per_thread_each(const PerThread *kept, void (*each)(void *record));

// Zeroes all records.
void jm_per_thread_forget(PerThread *kept);

// The memory of the records themselves.
SizeT jm_per_thread_bytes(const PerThread *kept);

// A thread has ended.
void jm_per_thread_end(ThreadId tid, ThreadEnd how);

// This is the child of a fork, and `tid` called it.
void jm_per_thread_after_fork_in_child(ThreadId tid);

#endif
