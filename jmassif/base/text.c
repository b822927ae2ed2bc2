// SPDX-License-Identifier: GPL-2.0-or-later
//
// Files, globs and UTF-8, numbers and formats, without a C library; see text.h.

#include "base/text.h"
#include "base/kernel.h"

#include <fcntl.h>

HChar *jm_text_copy(const HChar *name, const HChar *text)
{
    if (!text)
        return NULL;
    SizeT bytes = strlen(text) + 1;
    return memcpy(host_alloc(name, bytes), text, bytes);
}

void jm_text_cut(HChar *to, const HChar *from, SizeT size)
{
    SizeT n = strlen(from) < size ? strlen(from) : size - 1;
    memcpy(to, from, n);
    to[n] = 0;
}

const HChar *jm_text_file_name(const HChar *path)
{
    const HChar *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

ULong jm_text_number(const HChar *text, HChar **end)
{
    const HChar *at = text;
    while (*at == ' ' || (*at >= '\t' && *at <= '\r'))
        at++;
    ULong n = 0;
    const HChar *digits = at;
    for (; jm_text_is_digit(*at); at++)
        n = 10 * n + (*at - '0');
    if (end)
        *end = (HChar *)(at > digits ? at : text);
    return n;
}

HChar *jm_text_word(HChar *text, const HChar *separators, HChar **rest)
{
    HChar *word = text ? text : *rest;
    while (*word && strchr(separators, *word))
        word++;
    HChar *end = strpbrk(word, separators);
    *rest = end ? end + 1 : word + strlen(word);
    if (end)
        *end = 0;
    return *word ? word : NULL;
}

typedef struct {
    HChar *to;
    SizeT size, n; // n: written, or cut off
} Output;

static void put(Output *out, HChar c)
{
    if (out->n + 1 < out->size)
        out->to[out->n] = c;
    out->n++;
}

static void put_number(Output *out, ULong n, UInt base, UInt least_digits)
{
    HChar digits[24];
    UInt written = 0;
    for (; n || written < least_digits; n /= base)
        digits[written++] = "0123456789abcdef"[n % base];
    while (written)
        put(out, digits[--written]);
}

UInt jm_format_list(HChar *to, SizeT size, const HChar *text, va_list given)
{
    Output out = {to, size, 0};
    va_list arguments;
    va_copy(arguments, given);
    for (const HChar *at = text; *at; at++) {
        if (*at != '%') {
            put(&out, *at);
            continue;
        }
        UInt digits = 1;
        if (*++at == '0') {
            digits = at[1] - '0';
            at += 2;
        }
        const Bool is_long = *at == 'l';
        while (*at == 'l')
            at++;
        if (*at == 's') {
            for (const HChar *s = va_arg(arguments, const HChar *); *s; s++)
                put(&out, *s);
        } else if (*at == 'd') {
            Long n = is_long ? va_arg(arguments, Long) : va_arg(arguments, Int);
            if (n < 0)
                put(&out, '-');
            put_number(&out, n < 0 ? -(ULong)n : (ULong)n, 10, digits);
        } else if (*at == 'u' || *at == 'x') {
            ULong n = is_long ? va_arg(arguments, ULong) : va_arg(arguments, UInt);
            put_number(&out, n, *at == 'x' ? 16 : 10, digits);
        } else {
            jm_assert(*at == '%');
            put(&out, '%');
        }
    }
    va_end(arguments);
    if (size)
        to[out.n < size ? out.n : size - 1] = 0;
    return out.n;
}

UInt jm_format(HChar *to, SizeT size, const HChar *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    UInt n = jm_format_list(to, size, format, arguments);
    va_end(arguments);
    return n;
}

void jm_print(HostOutput kind, const HChar *format, ...)
{
    HChar text[4096];
    va_list arguments;
    va_start(arguments, format);
    jm_format_list(text, sizeof text, format, arguments);
    va_end(arguments);
    host_print(kind, text);
}

HChar *jm_text_read_file(const HChar *path, SizeT max_bytes)
{
    Int fd = jm_open(path, O_RDONLY, 0);
    if (fd < 0)
        return NULL;
    SizeT capacity = 4096, used = 0;
    HChar *text = host_alloc("jm.text", capacity + 1);
    while (used < max_bytes) {
        if (used == capacity) {
            capacity *= 2;
            text = host_realloc("jm.text", text, capacity + 1);
        }
        Int n = jm_read(fd, text + used, capacity - used);
        if (n < 0) {
            jm_close(fd);
            host_free(text);
            return NULL;
        }
        if (n == 0)
            break;
        used += n;
    }
    jm_close(fd);
    text[used < max_bytes ? used : max_bytes] = 0;
    return text;
}

Bool jm_text_each_line(const HChar *path, void (*each)(const HChar *line, void *context), void *context)
{
    Int fd = jm_open(path, O_RDONLY, 0);
    if (fd < 0)
        return False;
    HChar buffer[8192]; // a path and the fields of /proc before it fit; a longer line arrives in pieces
    SizeT used = 0;
    Int n;
    do {
        n = jm_read(fd, buffer + used, sizeof buffer - 1 - used);
        if (n > 0)
            used += n;
        buffer[used] = 0;
        HChar *line = buffer, *end;
        while ((end = strchr(line, '\n'))) {
            *end = 0;
            each(line, context);
            line = end + 1;
        }
        SizeT rest = used - (line - buffer);
        if (rest == sizeof buffer - 1 || (n <= 0 && rest > 0)) {
            each(line, context);
            rest = 0;
        }
        memmove(buffer, line, rest);
        used = rest;
    } while (n > 0);
    jm_close(fd);
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

Bool jm_text_fits_any(const HChar *globs, const HChar *text)
{
    while (*globs) {
        // Most globs begin with another letter.
        if ((*globs == *text || strchr("*?\\", *globs)) && jm_text_fits(globs, '|', text))
            return True;
        while (*globs && *globs != '|')
            globs++;
        if (*globs == '|')
            globs++;
    }
    return False;
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
    *bytes = jm_text_number(line, NULL) * 1024;
    return True;
}
