// SPDX-License-Identifier: GPL-2.0-or-later
//
// Small text helpers: reading files line by line, globs, UTF-8.

#ifndef JM_TEXT_H
#define JM_TEXT_H

#include "base/compat.h"

// The file's content as a string that the caller frees with VG_(free), cut at `max_bytes`; NULL if it cannot be read.
// Works for files of /proc, whose size is not known beforehand.
HChar *jm_text_read_file(const HChar *path, SizeT max_bytes);

// Calls `each` with every line of the file, without holding more than one line or allocating anything. False if it
// cannot be read to its end.
Bool jm_text_each_line(const HChar *path, void (*each)(const HChar *line, void *context), void *context);

// Whether a pattern of *, ? and characters behind a backslash fits all of a text, as VG_(string_match) understands it,
// in at most the product of their lengths as time. It ends at its NUL or before the first `stop`.
Bool jm_text_fits(const HChar *pattern, HChar stop, const HChar *text);

// Whether a glob fits: VG_(string_match)'s * and ?, and at most one [0-9], which that does not know. Before the [0-9]
// no other is allowed.
Bool jm_text_matches(const HChar *glob, const HChar *text);

// Writes a code point as UTF-8 and returns how many bytes that took: at most 4; none if it is no code point.
#define JM_UTF8_BYTES 4
UInt jm_text_put_utf8(HChar *to, UInt code_point);

// Whether the line is "LABEL:   123 kB", as /proc has them; its figure in bytes.
Bool jm_text_labelled_bytes(const HChar *line, const HChar *label, ULong *bytes);

#endif
