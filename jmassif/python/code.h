// SPDX-License-Identifier: GPL-2.0-or-later
//
// The function, file and line of an instruction in a Python code object, as a frame; the text of a str.

#pragma once

#include "base/client_memory.h"
#include "python/layout.h"
#include "symbols/symbol.h"

// `type`: PyCode_Type, or 0 if unknown. The layout must outlive all calls.
void jm_python_code_start(const PythonLayout *layout, Addr type);

// Start walking one stack with Python frames, and return the walk's number. The program stands still until it ends.
ULong jm_python_code_begin(void);

// Addresses of a code object's parts, which tell it from another one at its place.
typedef struct {
    Addr file, name, lines; // 0: read the object anew each time
    Int first_line;
} CodeParts;

// The frame of the instruction at byte `at` of a code object; 0 if it is not a Python function or not readable. Sets
// `*parts`. `was_on_stack`: the last walk saw this object.
FrameId jm_python_code_frame(Addr code, Int at, Bool was_on_stack, CodeParts *parts);

// Return whether an object that the last walk saw is still the same. It must be readable.
Bool jm_python_code_has(Addr code, const CodeParts *parts);

// Bytes of a structure up to the end of these word-sized fields. Fields may have any order, and published offsets may
// have any value.
SizeT jm_python_end_of(const UShort *fields, UInt n);

ULong jm_python_code_unreadable(void); // number of unreadable code objects so far

// Include/cpython/unicodeobject.h
#define JM_STR_LENGTH 16
#define JM_STR_STATE  32

#define JM_MAX_STR 65536 // code points; names are shorter

typedef struct {
    Addr data;
    UWord length; // code points
    UInt width;   // bytes per code point
} Str;

// False if the object is not a readable str.
static inline Bool jm_python_find_str(const PythonLayout *layout, Addr object, Str *str)
{
    UInt state;
    const Addr body = object + layout->object_more;
    if (!jm_read_word(body + JM_STR_LENGTH, &str->length) || !jm_read_uint(body + JM_STR_STATE, &state) ||
        str->length > JM_MAX_STR)
        return False;
    // Bits of the state: 2 of interning (8 in free-threaded builds since 3.14), 3 of width, compact, ascii.
    if (layout->object_more && !(state & 0xfc))
        state >>= 6;
    Bool is_compact = state & 1 << 5, is_ascii = state & 1 << 6;
    str->width = state >> 2 & 7;
    str->data = object + (is_ascii ? layout->string_ascii : layout->string_compact);
    return is_compact && (str->width == 1 || str->width == 2 || str->width == 4) &&
           jm_is_readable(object, str->data + str->length * str->width - object);
}

// Copy as UTF-8, cut to `size` bytes with the final zero.
void jm_python_copy_str(const Str *str, HChar *to, UInt size);
