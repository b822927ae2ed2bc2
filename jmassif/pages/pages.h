// SPDX-License-Identifier: GPL-2.0-or-later
//
// The page source: what the program has mapped besides its heap. Each mapping has an account by the stack that made it
// (and, of a file, by the file), and what the account holds are the mapping's *resident* bytes: a mapping's size says
// little, as libraries and drivers map far more than they use. What is mapped and unmapped is known at once; what
// becomes resident is not, so it is sampled from /proc/self/smaps.

#ifndef JM_PAGES_H
#define JM_PAGES_H

#include "base/compat.h"

// Called once options are read; turns --pages off where the system does not tell what is resident.
void jm_pages_init(void);

// Brings the ledger up to date, unless the last time was so short ago that it would cost more than a hundredth or so of
// the run. `is_due`: do it anyway.
void jm_pages_sample(Bool is_due);

// A dlopen of the thread is about to end: what it has mapped is measured, and told to its scope.
void jm_pages_measure_scope(ThreadId tid);

// Before a munmap: of a large file that is mapped there, what is resident is seen now or never.
void jm_pages_before_unmap(Addr start, SizeT bytes);

// Inside a snapshot: size, share and swap of those accounts for which they have changed.
void jm_pages_write(void);

// With a snapshot: what the last sample, if it is a new one, found in the whole process.
void jm_pages_write_process(void);

// A child's trace has none of them yet.
void jm_pages_after_fork_in_child(void);

#endif
