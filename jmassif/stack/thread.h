// SPDX-License-Identifier: GPL-2.0-or-later
//
// Threads' numbers and names (--threads=yes). A thread is the outermost frame of its stacks. Numbers follow the order
// of creation and are never reused, unlike the kernel's and the core's. A name is the one that the program has given to
// the kernel (prctl, pthread_setname_np; Python does so since 3.14).

#pragma once

#include "symbols/symbol.h"

// The thread's frame, made on first use.
FrameId jm_thread_frame(ThreadId tid);

// Events of threads. Calls are optional without --threads=yes.
void jm_thread_is_created(ThreadId tid); // called in the creating thread
void jm_thread_begins(ThreadId tid);     // called in the new thread, or by the one that goes on in a forked child
void jm_thread_leaves(ThreadId tid);     // optional: the kernel may not know it at its end

// Record names that changed. Call it before a snapshot.
void jm_thread_hear_names(Bool sees_pages);
