// SPDX-License-Identifier: GPL-2.0-or-later
//
// One array of records per module, indexed by thread number, and a list of these arrays, so that a thread's end reaches
// each of them; see per_thread.h.

#include "base/per_thread.h"
#include "base/libc.h"

static PerThread *all; // only modules with records

void jm_per_thread_start(PerThread *kept)
{
    kept->records = host_alloc_zeroed(kept->name, host_n_threads(), kept->record_bytes);
    kept->next = all;
    all = kept;
}

static void *record_of(const PerThread *kept, ThreadId tid)
{
    return (UChar *)kept->records + tid * kept->record_bytes;
}

void jm_per_thread_each(const PerThread *kept, void (*each)(void *record))
{
    for (ThreadId tid = 0; kept->records && tid < host_n_threads(); tid++)
        each(record_of(kept, tid));
}

void jm_per_thread_forget(PerThread *kept)
{
    if (kept->records)
        memset(kept->records, 0, host_n_threads() * kept->record_bytes);
}

void jm_per_thread_free(ThreadId tid, void *record, ThreadEnd how)
{
    host_free(*(void **)record);
}

void jm_per_thread_end(ThreadId tid, ThreadEnd how)
{
    for (PerThread *kept = all; kept; kept = kept->next) {
        void *record = record_of(kept, tid);
        if (kept->ended)
            kept->ended(tid, record, how);
        memset(record, 0, kept->record_bytes);
    }
}

void jm_per_thread_after_fork_in_child(ThreadId tid)
{
    for (ThreadId other = 0; other < host_n_threads(); other++)
        if (other != tid)
            jm_per_thread_end(other, LEFT_BY_A_FORK);
}
