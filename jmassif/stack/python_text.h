// SPDX-License-Identifier: GPL-2.0-or-later
//
// Python's str objects: where their text lies, and the text as UTF-8.

#ifndef JM_PYTHON_TEXT_H
#define JM_PYTHON_TEXT_H

#include "base/client_memory.h"
#include "base/compat.h"
#include "stack/python_layout.h"

// Include/cpython/unicodeobject.h
#define JM_STR_LENGTH 16
#define JM_STR_STATE  32

#define JM_MAX_STR 65536 // code points; longer texts are none that anybody would call something by

typedef struct {
    Addr data;
    UWord length; // code points
    UInt width;   // bytes of each
} Str;

// False: it is no str that can be read.
static inline Bool jm_python_find_str(const PythonLayout *layout, Addr object, Str *str)
{
    UInt state;
    if (!jm_read_word(object + JM_STR_LENGTH, &str->length) || !jm_read_uint(object + JM_STR_STATE, &state) ||
        str->length > JM_MAX_STR)
        return False;
    // 2 bits (3.6-3.12) or more of interning, 3 bits of width, then compact and ascii.
    Bool is_compact = state & 1 << 5, is_ascii = state & 1 << 6;
    str->width = state >> 2 & 7;
    str->data = object + (is_ascii ? layout->string_ascii : layout->string_compact);
    return is_compact && (str->width == 1 || str->width == 2 || str->width == 4) &&
           jm_is_readable(object, str->data + str->length * str->width - object);
}

// As UTF-8, cut at the size of the buffer.
void jm_python_copy_str(const Str *str, HChar *to, UInt size);

#endif
