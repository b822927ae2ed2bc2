// SPDX-License-Identifier: GPL-2.0-or-later
//
// Which thread it is, and what it is called (--threads=yes): the outermost frame of its stacks. Threads have numbers in
// the order in which they begin, which no other gets later, whatever the kernel and the core do with theirs. Their
// names are told when they are known: what Python calls a thread, else what the program has told the kernel.

#ifndef JM_THREAD_H
#define JM_THREAD_H

#include "base/compat.h"
#include "stack/symbol.h"

// The frame that stands for the thread.
FrameId jm_thread_frame(ThreadId tid);

// The thread's stack has Python frames: now its name may be known.
void jm_thread_runs_python(ThreadId tid);

// What happens to threads. None of these has to be called without --threads=yes.
void jm_thread_is_created(ThreadId tid); // in the one that creates it
void jm_thread_begins(ThreadId tid);     // in the new one
void jm_thread_after_syscall(ThreadId tid, UInt number, const UWord *args, SysRes res);
void jm_thread_after_fork_in_child(ThreadId tid);

// Before a snapshot: names that have changed since the threads last allocated.
void jm_thread_hear_names(Bool sees_pages);

#endif
