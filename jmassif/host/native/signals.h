// SPDX-License-Identifier: GPL-2.0-or-later
//
// Signals wait while their thread is in the recorder: a handler may allocate, jump away, or wait for another thread.

#ifndef JM_NATIVE_SIGNALS_H
#define JM_NATIVE_SIGNALS_H

#include "host/native/hook.h"

// Block all signals but those of errors, until jm_native_signals_let_go: for a thread without a record.
void jm_native_signals_hold(ULong *before);

// The thread has left the recorder: deliver what came meanwhile.
void jm_native_signals_let_go(NativeThread *t);

// From now on record the signal that ends the program, if no handler of its own takes it.
void jm_native_watch_signals(void);

#endif
