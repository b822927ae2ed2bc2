// SPDX-License-Identifier: GPL-2.0-or-later
//
// When the ledger is told to the trace. Snapshots come at a cadence that grows with the running time, so their number
// grows with its logarithm; between them light records of the totals keep the timeline fine.

#ifndef JM_SNAPSHOT_H
#define JM_SNAPSHOT_H

#include "base/compat.h"

// Why a snapshot is taken, by the names of docs/trace-format.md: id, name, whether pages are looked at however short
// ago they were, whether object files that have come or gone are told.
#define JM_SNAPSHOT_REASONS(X)                                                                                         \
    X(START, "start", True, True)                                                                                      \
    X(TIME, "time", False, False)                                                                                      \
    X(LOW_MEMORY, "low-memory", True, True)                                                                            \
    X(OUT_OF_MEMORY, "out-of-memory", True, True)                                                                      \
    X(REQUEST, "request", True, True)                                                                                  \
    X(MARK, "mark", False, True)                                                                                       \
    X(BEFORE_FORK, "time", True, True)                                                                                 \
    X(FORK, "fork", False, True)                                                                                       \
    X(EXEC, "exec", True, True)                                                                                        \
    X(END, "end", True, True)                                                                                          \
    X(EXIT, "exit", True, True)                                                                                        \
    X(SIGNAL, "signal", True, True)

#define JM_SNAPSHOT_ENUM(id, name, sees_pages, tells_objects) SNAPSHOT_##id,
typedef enum { JM_SNAPSHOT_REASONS(JM_SNAPSHOT_ENUM) } SnapshotReason;
#undef JM_SNAPSHOT_ENUM

const HChar *jm_snapshot_reason_name(SnapshotReason reason);

// What a module adds to each snapshot; NULL for what it does not. Those below the snapshot in the order of folders are
// handed over by main.c.
typedef struct {
    void (*before)(Bool in_full); // the ledger is brought up to date; `in_full`: though it cost time
    void (*tell)(void);           // sums and counters, before the accounts
    void (*inside)(void);         // records of the snapshot, after the accounts
    void (*after_fork)(void);     // in the child: it has told nothing yet
} SnapshotSource;

// Takes the first one. The `n` sources stay the caller's and must live on.
void jm_snapshot_start(const SnapshotSource *sources, UInt n);

// After each allocation or free (cheap: a counter and a compare).
void jm_snapshot_event(void);

// Now and then, also while nothing is allocated.
void jm_snapshot_tick(ULong blocks_dispatched);

// A system call may have taken any time. A program that waits for requests is only ever seen here.
void jm_snapshot_after_syscall(void);

// Before a system call. It may keep the program waiting for long, and it may be killed there, so what has changed is
// told.
void jm_snapshot_before_syscall(UInt number, const UWord *args);

// The totals as they are now, and their maximum since they were last written.
void jm_snapshot_write_totals(ULong now);

// Takes a snapshot now and flushes the trace.
void jm_snapshot_take(SnapshotReason reason);

// The program is about to be replaced by another. The child of a fork that does so at once leaves no trace.
void jm_snapshot_before_exec(void);

// What its child will begin with is brought up to date, and told for the parent.
void jm_snapshot_before_fork(void);

// The child of a fork starts with a snapshot of everything it holds.
void jm_snapshot_after_fork_in_child(void);

#endif
