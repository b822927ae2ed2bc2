// SPDX-License-Identifier: GPL-2.0-or-later
//
// Time in the unit of --time-unit. Reading the system's clock costs a system call under Valgrind, so hot paths use the
// last reading; device calls, API calls and snapshots take a new one.

#pragma once

#include "host/types.h"

void jm_clock_init(void);

// False once the program has forbidden itself the processor's counter (prctl): to read it would end the program.
extern Bool jm_clock_may_count;

// Return the time since the start in ms, instructions or bytes; it never decreases. With ms, jm_clock_cached returns
// the last result of jm_clock_now.
ULong jm_clock_now(void);
ULong jm_clock_cached(void);

// Return milliseconds since the start in any time unit, for cadences that limit the overhead.
ULong jm_clock_ms(void);

// Return the time of the start, in milliseconds since 1970.
ULong jm_clock_start_unix_ms(void);

// Bytes allocated plus bytes freed since the start, the clock of --time-unit=B. The ledger counts them.
extern ULong jm_clock_traffic_bytes;

// Instructions of the program since the start, the clock of --time-unit=i. The host counts them.
extern ULong jm_clock_instructions;
