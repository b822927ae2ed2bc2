// SPDX-License-Identifier: GPL-2.0-or-later
//
// Calls of dlopen that return to the program itself, as the C library must see the true caller. A call is reported as
// ended with the next event of its thread that comes from outside of it. All of this is under the recorder's lock.

#ifndef JM_NATIVE_PENDING_H
#define JM_NATIVE_PENDING_H

#include "host/native/hook.h"

// Where a call was made: the stack pointer before it (after it, too), and on arm64, where a call leaves nothing on the
// stack, the caller's frame record.
typedef struct {
    Addr sp, frame;
} CallPlace;

// A call of dlopen begins. `return_address` is on the stack below `place.sp` on x86-64.
void jm_native_pending_begin(const HChar *name, CallPlace place, Addr return_address);

extern UInt jm_native_n_pending;

// End the calls of this thread that have returned, by a place that is in progress.
void jm_native_pending_settle(CallPlace place);

#endif
