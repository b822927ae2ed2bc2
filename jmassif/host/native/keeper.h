// SPDX-License-Identifier: GPL-2.0-or-later
//
// Keeps the trace up to date while the program waits; see keeper.c.

#ifndef JM_NATIVE_KEEPER_H
#define JM_NATIVE_KEEPER_H

#include "host/types.h"

void jm_native_keeper_start(void);

// Before the process ends or executes another program.
void jm_native_keeper_stop(void);

// Without one, in the child of a fork or after a call of exec that may fail: begin one at an event, once there is a
// trace.
void jm_native_keeper_due(void);

#endif
