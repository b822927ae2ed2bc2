// SPDX-License-Identifier: GPL-2.0-or-later
//
// One array of records per module, indexed by thread number, and a list of these arrays, so that a thread's end reaches
// each of them; see per_thread.h.

#include "base/per_thread.h"

static PerThread *all; // only modules with records

void jm_per_thread_start(PerThread *kept)
{
    kept->records = VG_(calloc)(kept->name, VG_N_THREADS, kept->record_bytes);
    kept->next = all;
    all = kept;
}

static void *record_of(const PerThread *kept, ThreadId tid)
{
    return (UChar *)kept->records + tid * kept->record_bytes;
}

void jm_per_thread_each(const PerThread *kept, void (*each)(void *record))
{
    for (ThreadId tid = 0; kept->records && tid < VG_N_THREADS; tid++)
        each(record_of(kept, tid));
}

void jm_per_thread_forget(PerThread *kept)
{
    if (kept->records)
        VG_(memset)(kept->records, 0, jm_per_thread_bytes(kept));
}

SizeT jm_per_thread_bytes(const PerThread *kept)
{
    return kept->records ? VG_N_THREADS * kept->record_bytes : 0;
}

void jm_per_thread_end(ThreadId tid, ThreadEnd how)
{
    for (PerThread *kept = all; kept; kept = kept->next) {
        void *record = record_of(kept, tid);
        if (kept->ended)
            kept->ended(tid, record, how);
        VG_(memset)(record, 0, kept->record_bytes);
    }
}

void jm_per_thread_after_fork_in_child(ThreadId tid)
{
    for (ThreadId other = 0; other < VG_N_THREADS; other++)
        if (other != tid)
            jm_per_thread_end(other, LEFT_BY_A_FORK);
}
