// SPDX-License-Identifier: GPL-2.0-or-later
//
// Memory of the other processes of a job, read when this one samples its own. Pss divides a page by the number of
// processes that have it, so shares add up only if they are all read at one moment; and a process that waits for the
// others cannot read its own.

#ifndef JM_PAGES_PROCESSES_H
#define JM_PAGES_PROCESSES_H

#include "base/compat.h"

// Looks for the processes that run under this tool, unless the last reading was so short ago that it would cost more
// than a hundredth or so of the run. `is_due`: do it anyway, if a reading is cheap.
void jm_processes_find(Bool is_due);

// Reads the share of each one found, right after this process's own mappings. A reading during which pages have changed
// hands is dropped.
void jm_processes_sample(void);

// How long finding and reading have just taken.
ULong jm_processes_spent_ms(void);

// Writes a figure for each of them, if they were read in this sample.
void jm_processes_write(ULong time);

// A process that has neither forked nor been forked or started by another of the tool's has no others to read.
void jm_processes_before_fork(void);
void jm_processes_after_fork_in_child(void);

#endif
