// SPDX-License-Identifier: GPL-2.0-or-later
//
// Helpers for text: files and their lines, globs, UTF-8, fields of /proc.

#pragma once

#include "base/libc.h"
#include "host/host.h"

#define jm_text_equal(a, b) (strcmp(a, b) == 0)

static inline Bool jm_text_is_digit(HChar c)
{
    return c >= '0' && c <= '9';
}

// A copy that the caller frees with host_free; NULL of NULL.
HChar *jm_text_copy(const HChar *name, const HChar *text);

// Copy a text, cut to `size - 1` bytes.
void jm_text_cut(HChar *to, const HChar *from, SizeT size);

// The part of a path after its last slash.
const HChar *jm_text_file_name(const HChar *path);

// The number at the start of a text, after spaces; 0 if there is none. `end`, if not NULL, is set behind it, or to
// `text`.
ULong jm_text_number(const HChar *text, HChar **end);

// Take the next word apart from a text, as strtok_r does: `text` is NULL after the first call.
HChar *jm_text_word(HChar *text, const HChar *separators, HChar **rest);

// Write a text, cut to `size - 1` bytes. Of printf's formats %s %d %u %x, with l and ll, and with 02 or the like a
// least number of digits. Return the length without the cut.
UInt jm_format(HChar *to, SizeT size, const HChar *format, ...) __attribute__((format(printf, 3, 4)));
UInt jm_format_list(HChar *to, SizeT size, const HChar *format, va_list arguments);

// Print a line for the user, by jm_format. A note is silent with -q.
void jm_print(HostOutput kind, const HChar *format, ...) __attribute__((format(printf, 2, 3)));
#define jm_message(...) jm_print(HOST_WARNING, __VA_ARGS__)
#define jm_note(...)    jm_print(HOST_NOTE, __VA_ARGS__)

// Read a file into a string, cut at `max_bytes`; NULL if it cannot be read. The caller frees it with host_free. Works
// for files of /proc, which have no size.
HChar *jm_text_read_file(const HChar *path, SizeT max_bytes);

// Call `each` with every line of the file, without allocating; a line of more than 8 KiB arrives in pieces. False if
// the file cannot be read to its end.
Bool jm_text_each_line(const HChar *path, void (*each)(const HChar *line, void *context), void *context);

// Return whether a pattern of *, ? and backslash-escaped characters matches all of a text, in
// at most the product of their lengths as time. The pattern ends at its NUL or before the first `stop`.
Bool jm_text_fits(const HChar *pattern, HChar stop, const HChar *text);

#define jm_text_matches(glob, text) jm_text_fits(glob, 0, text)

// Return whether one of the patterns ("a*|b?") matches.
Bool jm_text_fits_any(const HChar *patterns, const HChar *text);

// Write a code point as UTF-8 and return its length: 1 to 4 bytes, 0 above U+10FFFF.
#define JM_UTF8_BYTES 4
UInt jm_text_put_utf8(HChar *to, UInt code_point);

// Parse a line "LABEL: 123 kB" of /proc into bytes; False if it has another label.
Bool jm_text_labelled_bytes(const HChar *line, const HChar *label, ULong *bytes);
