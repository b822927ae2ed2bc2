// SPDX-License-Identifier: GPL-2.0-or-later
//
// When the ledger is told to the trace. Snapshots come at a cadence that grows with the running time, so their number
// grows with its logarithm; between them light records of the totals keep the timeline fine.

#ifndef JM_SNAPSHOT_H
#define JM_SNAPSHOT_H

#include "base/compat.h"

void jm_snapshot_start(void);

// After each allocation or free (cheap: a counter and a compare).
void jm_snapshot_event(void);

// Now and then, also while nothing is allocated.
void jm_snapshot_tick(ULong blocks_dispatched);

// A system call may have taken any time. A program that waits for requests is only ever seen here.
void jm_snapshot_after_syscall(void);

// The totals as they are now, and their maximum since they were last written.
void jm_snapshot_write_totals(ULong now);

// Takes a snapshot now, for one of the reasons of docs/trace-format.md, and flushes the trace.
void jm_snapshot_take(const HChar *reason);

// The program is about to be replaced by another. The child of a fork that does so at once leaves no trace.
void jm_snapshot_before_exec(void);

// The child of a fork starts with a snapshot of everything it holds.
void jm_snapshot_after_fork_in_child(void);

#endif
