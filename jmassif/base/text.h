// SPDX-License-Identifier: GPL-2.0-or-later
//
// Small text helpers for reading the files that describe a board.

#ifndef JM_TEXT_H
#define JM_TEXT_H

#include "base/compat.h"

// The file's content as a string that the caller frees with VG_(free), cut at `max_bytes`; NULL if it cannot be read.
// Works for files of /proc, whose size is not known beforehand.
HChar *jm_text_read_file(const HChar *path, SizeT max_bytes);

// Calls `each` with every line of the file, without holding more than one line or allocating anything. False if it
// cannot be read to its end.
Bool jm_text_each_line(const HChar *path, void (*each)(const HChar *line, void *context), void *context);

// Whether the line is "LABEL:   123 kB", as /proc has them; its figure in bytes.
Bool jm_text_labelled_bytes(const HChar *line, const HChar *label, ULong *bytes);

#endif
