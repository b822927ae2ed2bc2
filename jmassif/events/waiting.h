// SPDX-License-Identifier: GPL-2.0-or-later
//
// Recognises system calls that block. The program may be killed while it waits, so recent changes must be written
// before.

#pragma once

#include "host/types.h"

// A program that is killed in a shorter wait loses little.
#define LONG_WAIT_MS 100

// True if the call is a sleep: it will take that long unless a signal comes.
Bool jm_waiting_is_certain(UInt number, const UWord *args);

// True if the call may block for any time; sleeps are not included. Asks the kernel whether a read or write would
// succeed at once.
Bool jm_waiting_is_likely(UInt number, const UWord *args);
