// SPDX-License-Identifier: GPL-2.0-or-later
//
// Time as the user asked for it (--time-unit). Reading the system's clock costs a system call under Valgrind, so hot
// paths use the last reading; whoever needs the true time (device calls, scopes, snapshots) reads it anew.

#ifndef JM_CLOCK_H
#define JM_CLOCK_H

#include "base/compat.h"

void jm_clock_init(void);

// A system call of the program, which may forbid the processor's counter.
void jm_clock_before_syscall(UInt number, const UWord *args);

// Now, and (in ms) the last value that jm_clock_now returned. In ms, instructions or bytes since the start; never
// decreases.
ULong jm_clock_now(void);
ULong jm_clock_cached(void);

// Milliseconds since the start whatever the unit: for cadences that protect the user's time.
ULong jm_clock_ms(void);

// Milliseconds since 1970 at the start.
ULong jm_clock_start_unix_ms(void);

// Allocated and freed since the start: the clock of --time-unit=B. The ledger counts them.
extern ULong jm_clock_traffic_bytes;

// Counts guest instructions for --time-unit=i: adds the code that does to a superblock.
IRSB *jm_clock_count_instructions(IRSB *in);

#endif
