// SPDX-License-Identifier: GPL-2.0-or-later
//
// The file behind the trace. Records are collected in a buffer and reach the file at every snapshot, so that a program
// that is killed leaves all of its history up to the last one. Between snapshots the file may have a *tail*: records
// that stand for what has come since, and make way for the next ones. A trace that cannot be written (bad path, full
// disk) is given up with one message; the profiled program goes on.

#ifndef JM_TRACE_FILE_H
#define JM_TRACE_FILE_H

#include "base/compat.h"

// Opens the file that --jmassif-out-file names.
void jm_trace_open(void);

// The child of a fork gets a file of its own. It is created at the first flush, so that a child that only calls exec
// leaves none. `jm_trace_before_fork` must have been called in the parent just before.
void jm_trace_before_fork(void);
void jm_trace_after_fork_in_child(void);
Bool jm_trace_is_pending(void); // not created yet

void jm_trace_flush(void);
void jm_trace_close(void);

// Flushes; what is written from here on until the end of the tail is its, and may define nothing. False: the file is
// none that can have one, such as a pipe.
Bool jm_trace_begin_tail(void);
void jm_trace_end_tail(void);

const HChar *jm_trace_path(void); // for messages; NULL if there is no file

ULong jm_trace_bytes(void); // written so far, without a tail

// A record with the Adler-32 of what was written since the last one, or since the file began.
void jm_trace_write_checksum(void);

// The records that trace.c holds back: written before a flush.
void jm_trace_write_held(void);
UInt jm_trace_held_bytes(void);

// Room for a record of at most `bytes`: where to write it. `jm_trace_written` takes its end, before anything
// else is asked of the trace.
HChar *jm_trace_room(SizeT bytes);
void jm_trace_written(const HChar *end);

void jm_trace_file_stats(void); // stats.h

#endif
