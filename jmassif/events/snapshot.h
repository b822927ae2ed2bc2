// SPDX-License-Identifier: GPL-2.0-or-later
//
// Decides when the ledger is written to the trace. The distance of snapshots grows with the running time, so their
// number grows with its logarithm. Light records of the totals in between keep the timeline fine.

#pragma once

#include "host/types.h"

// Reasons for a snapshot, named as in docs/trace-format.md: id, name, sample pages even if that was done recently,
// write object files that were mapped or unmapped.
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

// A module's additions to each snapshot; a NULL function adds nothing. recorder.c passes in the sources of folders
// below this one.
typedef struct {
    void (*before)(Bool in_full); // bring the ledger up to date; `in_full`: even if slow
    void (*tell)(void);           // write sums and counters, before the accounts
    void (*inside)(void);         // write records of the snapshot, after the accounts
    void (*after_fork)(void);     // forget what the parent has written
    Bool reads_program;           // has no part in a snapshot beside the program's threads; these come first
} SnapshotSource;

// Takes the first snapshot. The caller keeps the `n` sources, which must live on.
void jm_snapshot_start(const SnapshotSource *sources, UInt n);

// Call after each allocation or free. Cheap: a counter and a compare.
void jm_snapshot_event(void);

// Call now and then, also while the program allocates nothing.
void jm_snapshot_tick(ULong blocks_dispatched);

// Call a few times a second, also beside the program's threads: samples pages that are touched while the program
// allocates nothing, and writes recent changes.
void jm_snapshot_beside(void);

// Call after each system call, which may have taken any time, and after a large allocation, which may make a peak. Only
// this sees programs that wait for requests.
void jm_snapshot_look(void);

// Call before each system call. It may block for long, and the program may be killed meanwhile, so recent changes are
// written.
void jm_snapshot_before_syscall(UInt number, const UWord *args);

// Writes the current totals, and their maximum since they were last written.
void jm_snapshot_write_totals(ULong now);

// Takes a snapshot now and flushes the trace.
void jm_snapshot_take(SnapshotReason reason);

// Call before exec. A forked child that execs at once leaves no trace.
void jm_snapshot_before_exec(void);

// Call before fork: brings the ledger up to date and takes a snapshot of the parent.
void jm_snapshot_before_fork(void);

// Call in a forked child: takes a snapshot of everything that it holds.
void jm_snapshot_after_fork_in_child(void);
