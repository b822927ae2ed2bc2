// SPDX-License-Identifier: GPL-2.0-or-later
//
// Reads the memory of a job's other processes when this one samples its own. Pss divides a page by the number of
// processes that map it, so shares add up only if all are read at one moment. A process that waits for the others
// cannot read its own.

#pragma once

#include "host/types.h"

// Reads the Pss of each process that runs under this tool, unless the last reading was so recent that another would
// exceed a hundredth or so of the run. `is_due`: read anyway, if a reading is cheap. Call right after reading this
// process's mappings, whose Pss is `own_share`: if that has changed, the reading is dropped. Returns its time in ms.
ULong jm_processes_sample(Bool is_due, ULong own_share);

// Writes a figure for each process, if it was read in this sample.
void jm_processes_write(ULong time);

// Call at the start, and in a forked child.
void jm_processes_begin(void);

// Call before fork. Processes are searched for only after a fork, or if the parent runs under this tool.
void jm_processes_before_fork(void);
