// SPDX-License-Identifier: GPL-2.0-or-later
//
// The page source: records the program's mappings except its heap. Each mapping has an account by the stack that
// created it and, for a file, by the file. The account holds the mapping's *resident* bytes: sizes say little, as
// libraries and drivers map far more than they use. Mapping and unmapping are seen at once; resident pages are sampled
// from /proc/self/smaps.

#pragma once

#include "host/types.h"

// Call once options are read. Turns --pages off if the system does not report resident pages.
void jm_pages_init(void);

// Brings the ledger up to date, unless the last sample was so recent that sampling would exceed 1.5 % of the run.
// `is_due`: sample anyway.
void jm_pages_sample(Bool is_due);

// Call at the end of a thread's dlopen: measures the pages of its mappings and adds them to its scope.
void jm_pages_measure_scope(ThreadId tid);

// Call before munmap: measures large files in the range, the last chance to see their resident pages.
void jm_pages_before_unmap(Addr start, SizeT bytes);

// Call inside a snapshot: writes size, share and swap of the accounts that changed.
void jm_pages_write(void);

// Call with a snapshot: writes the last sample's figures of the whole process, once per sample.
void jm_pages_write_process(void);

// Call in a forked child: its trace starts empty.
void jm_pages_after_fork_in_child(void);
