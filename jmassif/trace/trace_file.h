// SPDX-License-Identifier: GPL-2.0-or-later
//
// The trace's file. Records are buffered and written at every snapshot, so that the trace of a killed program is
// complete up to its last snapshot. Between snapshots the file may end in a *tail*: records of the changes since, which
// the next records overwrite. If the file cannot be written (bad path, full disk), the recorder prints one message and
// stops writing; the program goes on. At the start, without --keep-going=yes, it exits instead.

#pragma once

#include "host/types.h"

// Opens the file named by --jmassif-out-file.
void jm_trace_open(void);

// A forked child gets its own file, created at the first flush: a child that only calls exec leaves none. Call
// `jm_trace_before_fork` in the parent just before.
void jm_trace_before_fork(void);
void jm_trace_after_fork_in_child(void);
Bool jm_trace_is_pending(void); // the child's file does not exist yet

void jm_trace_flush(void);
void jm_trace_close(void);

// Flushes and begins a tail; records up to jm_trace_end_tail belong to it, and must not define strings, frames or
// accounts. False if the file cannot have a tail, such as a pipe.
Bool jm_trace_begin_tail(void);
void jm_trace_end_tail(void);

const HChar *jm_trace_path(void); // for messages; owned here; NULL if there is no file

ULong jm_trace_bytes(void); // written so far, without the tail

// Writes the Adler-32 of everything since the last such record, or since the start of the file.
void jm_trace_write_checksum(void);

// Records that trace.c holds back; written before each flush.
void jm_trace_write_held(void);
UInt jm_trace_held_bytes(void);

// Returns a write position with room for a record of at most `bytes`. Pass the record's end to `jm_trace_written`
// before any other call of this interface.
HChar *jm_trace_room(SizeT bytes);
void jm_trace_written(const HChar *end);
