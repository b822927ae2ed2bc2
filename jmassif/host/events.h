// SPDX-License-Identifier: GPL-2.0-or-later
//
// Events of the program, which a host reports and recorder.c implements. They come one at a time. Blocks of malloc
// have an interface of their own, heap/heap.h, and so have client requests, requests/client.h.

#pragma once

#include "host/types.h"

// Options are known, the program has not begun: opens the trace, or ends the run (exit status 2).
void event_started(void);

// The program goes on; `n` grows with what it has run. For snapshots that are due.
void event_tick(ULong n);

// The program has ended. True if by a call of exit; else event_killed follows at the very end, with the signal.
Bool event_ended(void);
void event_closed(void);
void event_killed(UInt signal);

// The recording ends, and the program goes on.
void event_stopped(void);

// `has_symbols`: the host has read the symbols of an object with this.
void event_mapped(Addr start, SizeT bytes, Bool is_readable, Bool is_code, Bool has_symbols);
void event_protected(Addr start, SizeT bytes, Bool is_code);
void event_unmapped(Addr start, SizeT bytes);

void event_thread_created(ThreadId child);
void event_thread_began(ThreadId tid);
void event_thread_leaves(ThreadId tid); // optional: in the thread, which ends soon
void event_thread_ended(ThreadId tid);

void event_before_fork(void);
void event_after_fork_in_child(ThreadId tid); // the thread that called fork

// `result` is the kernel's: -errno of a failed call.
void event_before_syscall(ThreadId tid, UInt number, const UWord *args);
void event_after_syscall(ThreadId tid, UInt number, const UWord *args, Long result);
