// SPDX-License-Identifier: GPL-2.0-or-later
//
// Keeps the trace up to date while the program waits; see keeper.c.

#ifndef JM_NATIVE_KEEPER_H
#define JM_NATIVE_KEEPER_H

#include "host/types.h"

// A process without a keeper, whose trace exists: begin one at the next event.
extern Bool jm_native_wants_keeper;

void jm_native_keeper_start(void);

// Before the process ends or executes another program.
void jm_native_keeper_stop(void);

// In the child of a fork, which has none.
void jm_native_keeper_forked(void);

#endif
