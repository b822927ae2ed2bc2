// SPDX-License-Identifier: GPL-2.0-or-later
//
// Files, globs and UTF-8, with the few string functions that a Valgrind tool has; see text.h.

#include "base/text.h"

HChar *jm_text_read_file(const HChar *path, SizeT max_bytes)
{
    Int fd = VG_(fd_open)(path, VKI_O_RDONLY, 0);
    if (fd < 0)
        return NULL;
    SizeT capacity = 4096, used = 0;
    HChar *text = VG_(malloc)("jm.text", capacity + 1);
    while (used < max_bytes) {
        if (used == capacity) {
            capacity *= 2;
            text = VG_(realloc)("jm.text", text, capacity + 1);
        }
        Int n = VG_(read)(fd, text + used, capacity - used);
        if (n < 0) {
            VG_(close)(fd);
            VG_(free)(text);
            return NULL;
        }
        if (n == 0)
            break;
        used += n;
    }
    VG_(close)(fd);
    text[used < max_bytes ? used : max_bytes] = 0;
    return text;
}

Bool jm_text_each_line(const HChar *path, void (*each)(const HChar *line, void *context), void *context)
{
    Int fd = VG_(fd_open)(path, VKI_O_RDONLY, 0);
    if (fd < 0)
        return False;
    HChar buffer[8192]; // a path and the fields of /proc before it fit; a longer line arrives in pieces
    SizeT used = 0;
    Int n;
    do {
        n = VG_(read)(fd, buffer + used, sizeof buffer - 1 - used);
        if (n > 0)
            used += n;
        buffer[used] = 0;
        HChar *line = buffer, *end;
        while ((end = VG_(strchr)(line, '\n'))) {
            *end = 0;
            each(line, context);
            line = end + 1;
        }
        SizeT rest = used - (line - buffer);
        if (rest == sizeof buffer - 1 || (n <= 0 && rest > 0)) {
            each(line, context);
            rest = 0;
        }
        VG_(memmove)(buffer, line, rest);
        used = rest;
    } while (n > 0);
    VG_(close)(fd);
    return n == 0;
}

// Match one character against the pattern's head; `*n` is the length of that head.
static Bool fits_one(const HChar *pattern, HChar stop, HChar c, UInt *n)
{
    *n = 1;
    if (*pattern == '?')
        return True;
    if (*pattern == '\\' && pattern[1] && pattern[1] != stop) {
        *n = 2;
        return pattern[1] == c;
    }
    return *pattern == c;
}

// On a mismatch, extend only the last star: a longer match of an earlier one never helps.
Bool jm_text_fits(const HChar *pattern, HChar stop, const HChar *text)
{
    const HChar *after_star = NULL, *taken = NULL;
    while (*text) {
        UInt n;
        if (*pattern == '*') {
            after_star = ++pattern;
            taken = text;
        } else if (*pattern && *pattern != stop && fits_one(pattern, stop, *text, &n)) {
            pattern += n;
            text++;
        } else if (after_star) {
            pattern = after_star;
            text = ++taken;
        } else {
            return False;
        }
    }
    while (*pattern == '*')
        pattern++;
    return !*pattern || *pattern == stop;
}

Bool jm_text_matches(const HChar *glob, const HChar *text)
{
    static const HChar digit[] = "[0-9]";
    const HChar *bracket = VG_(strstr)(glob, digit);
    if (!bracket)
        return jm_text_fits(glob, 0, text);
    SizeT n = bracket - glob;
    return VG_(strncmp)(glob, text, n) == 0 && VG_(isdigit)(text[n]) &&
           jm_text_fits(bracket + sizeof digit - 1, 0, text + n + 1);
}

UInt jm_text_put_utf8(HChar *to, UInt code_point)
{
    static const UInt ends[JM_UTF8_BYTES] = {0x80, 0x800, 0x10000, 0x110000}; // first code point beyond 1, 2, … bytes
    static const UChar marks[JM_UTF8_BYTES] = {0, 0xc0, 0xe0, 0xf0};          // leading bits of the first byte
    UInt n = 0;
    while (n < JM_UTF8_BYTES && code_point >= ends[n])
        n++;
    if (n == JM_UTF8_BYTES)
        return 0;
    for (UInt i = n; i > 0; i--, code_point >>= 6)
        to[i] = (HChar)(0x80 | (code_point & 0x3f));
    to[0] = (HChar)(marks[n] | code_point);
    return n + 1;
}

Bool jm_text_labelled_bytes(const HChar *line, const HChar *label, ULong *bytes)
{
    while (*label)
        if (*line++ != *label++)
            return False;
    if (*line++ != ':')
        return False;
    while (*line == ' ' || *line == '\t')
        line++;
    *bytes = VG_(strtoull10)(line, NULL) * 1024;
    return True;
}
