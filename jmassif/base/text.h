// SPDX-License-Identifier: GPL-2.0-or-later
//
// Helpers for text: files and their lines, globs, UTF-8, fields of /proc.

#ifndef JM_TEXT_H
#define JM_TEXT_H

#include "base/compat.h"

// Read a file into a string, cut at `max_bytes`; NULL if it cannot be read. The caller frees it with VG_(free). Works
// for files of /proc, which have no size.
HChar *jm_text_read_file(const HChar *path, SizeT max_bytes);

// Call `each` with every line of the file, without allocating; a line of more than 8 KiB arrives in pieces. False if
// the file cannot be read to its end.
Bool jm_text_each_line(const HChar *path, void (*each)(const HChar *line, void *context), void *context);

// Return whether a pattern of *, ? and backslash-escaped characters matches all of a text, as VG_(string_match) does,
// but in at most the product of their lengths as time. The pattern ends at its NUL or before the first `stop`.
Bool jm_text_fits(const HChar *pattern, HChar stop, const HChar *text);

// Return whether a glob matches: *, ? and at most one [0-9], which VG_(string_match) lacks. Before the [0-9] wildcards
// are not allowed.
Bool jm_text_matches(const HChar *glob, const HChar *text);

// Write a code point as UTF-8 and return its length: 1 to 4 bytes, 0 above U+10FFFF.
#define JM_UTF8_BYTES 4
UInt jm_text_put_utf8(HChar *to, UInt code_point);

// Parse a line "LABEL: 123 kB" of /proc into bytes; False if it has another label.
Bool jm_text_labelled_bytes(const HChar *line, const HChar *label, ULong *bytes);

#endif
