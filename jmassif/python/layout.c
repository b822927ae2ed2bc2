// SPDX-License-Identifier: GPL-2.0-or-later
//
// Layouts of releases, published offsets, and line tables; see layout.h. To add a release, add a row to
// `layouts` and, if it publishes offsets, to `debug_positions`.
//
// Offsets are from CPython's headers (Include/internal/pycore_runtime.h, pycore_interp.h, pycore_frame.h,
// Include/cpython/code.h and their predecessors) of the last patch release of each minor. They do not change within a
// minor.

#include "python/layout.h"
#include "base/client_memory.h"
#include "base/libc.h"

// clang-format off
#define CODE_3_6 .code_firstlineno = 36, .code_filename = 96, .code_name = 104, .code_plain_name = 104, .code_lines = 112, \
     .code_bytes = 40, .string_ascii = 48, .string_compact = 72
#define CODE_3_8 .code_firstlineno = 40, .code_filename = 104, .code_name = 112, .code_plain_name = 112, .code_lines = 120, \
     .code_bytes = 48, .string_ascii = 48, .string_compact = 72
#define CODE_3_12 .code_firstlineno = 68, .code_filename = 112, .code_name = 128, .code_plain_name = 120, .code_lines = 136, \
     .string_ascii = 40, .string_compact = 56
static const PythonLayout layouts[] = {
    {.version = 0x306, .chain = CHAIN_FRAME_OBJECTS, .lines = LINES_LNOTAB, .interpreter_threads = 8,
     .thread_next = 8, .thread_interpreter = 16, .thread_id = 152, .thread_frame = 24,
     .frame_code = 32, .frame_previous = 24, .frame_instruction = 120, CODE_3_6},
    {.version = 0x307, .chain = CHAIN_FRAME_OBJECTS, .lines = LINES_LNOTAB, .interpreters_head = 24, .interpreter_threads = 8,
     .thread_next = 8, .thread_interpreter = 16, .thread_id = 176, .thread_frame = 24,
     .frame_code = 32, .frame_previous = 24, .frame_instruction = 104, CODE_3_6},
    {.version = 0x308, .chain = CHAIN_FRAME_OBJECTS, .lines = LINES_LNOTAB, .interpreters_head = 32,
     .interpreter_threads = 8, .thread_next = 8, .thread_interpreter = 16, .thread_id = 176, .thread_frame = 24,
     .frame_code = 32, .frame_previous = 24, .frame_instruction = 104, CODE_3_8},
    {.version = 0x309, .chain = CHAIN_FRAME_OBJECTS, .lines = LINES_LNOTAB, .interpreters_head = 32,
     .interpreter_threads = 8, .thread_next = 8, .thread_interpreter = 16, .thread_id = 176, .thread_frame = 24,
     .frame_code = 32, .frame_previous = 24, .frame_instruction = 104, CODE_3_8},
    {.version = 0x30a, .chain = CHAIN_FRAME_OBJECTS, .lines = LINES_3_10, .interpreters_head = 32,
     .interpreter_threads = 8, .thread_next = 8, .thread_interpreter = 16, .thread_id = 176, .thread_frame = 24,
     .thread_cframe = 48, .root_cframe = 264, .cframe_previous = 8,
     .frame_code = 32, .frame_previous = 24, .frame_instruction = 96, CODE_3_8},
    {.version = 0x30b, .chain = CHAIN_CFRAME_ENTRY, .lines = LINES_3_11, .interpreters_head = 40,
     .interpreter_threads = 16, .thread_next = 8, .thread_interpreter = 16, .thread_id = 152, .thread_frame = 56,
     .thread_cframe = 56, .root_cframe = 336, .cframe_frame = 8, .cframe_previous = 16,
     .frame_code = 32, .frame_previous = 48, .frame_instruction = 56, .frame_owner = 69, .frame_is_entry = 68, .first_shim_owner = 3,
     .code_firstlineno = 72, .code_filename = 112, .code_name = 128, .code_plain_name = 120, .code_lines = 136, .code_bytes = 184,
     .string_ascii = 48, .string_compact = 72},
    {.version = 0x30c, .chain = CHAIN_CFRAME_SHIM, .lines = LINES_3_11, .interpreters_head = 40,
     .interpreter_threads = 72, .thread_next = 8, .thread_interpreter = 16, .thread_id = 136, .thread_frame = 56,
     .cframe_frame = 0, .cframe_previous = 8,
     .frame_code = 0, .frame_previous = 8, .frame_instruction = 56, .frame_owner = 70, .first_shim_owner = 3, CODE_3_12, .code_bytes = 192},
    {.version = 0x30d, .chain = CHAIN_SHIM, .lines = LINES_3_11, .interpreters_head = 632,
     .interpreter_next = 7264, .interpreter_threads = 7344,
     .thread_next = 8, .thread_interpreter = 16, .thread_id = 152, .thread_frame = 72,
     .frame_code = 0, .frame_previous = 8, .frame_instruction = 56, .frame_owner = 70, .first_shim_owner = 3, CODE_3_12, .code_bytes = 200},
    {.version = 0x30e, .chain = CHAIN_SHIM, .lines = LINES_3_11, .interpreters_head = 808,
     .interpreter_next = 7272, .interpreter_threads = 7344,
     .thread_next = 8, .thread_interpreter = 16, .thread_id = 152, .thread_frame = 72,
     .frame_code = 0, .frame_previous = 8, .frame_instruction = 56, .frame_owner = 74, .first_shim_owner = 3, CODE_3_12, .code_bytes = 208},
    {.version = 0x30f, .chain = CHAIN_SHIM, .lines = LINES_3_11, .interpreters_head = 936,
     .interpreter_next = 7264, .interpreter_threads = 7336,
     .thread_next = 8, .thread_interpreter = 16, .thread_id = 176, .thread_frame = 72, .thread_base = 80,
     .frame_code = 0, .frame_previous = 8, .frame_instruction = 56, .frame_owner = 74, .first_shim_owner = 3, CODE_3_12, .code_bytes = 208},
};
// clang-format on

const PythonLayout *jm_python_layout(UInt major, UInt minor)
{
    for (UInt i = 0; i < sizeof layouts / sizeof layouts[0]; i++)
        if (layouts[i].version == (major << 8 | minor))
            return &layouts[i];
    return NULL;
}

// Positions of fields inside _Py_DebugOffsets (Include/internal/pycore_debug_offsets.h), which differ between minors; 0
// if a field is not published.
// clang-format off
static const PythonLayout debug_positions[] = {
    {.version = 0x30d, .interpreters_head = 40, .interpreter_next = 64, .interpreter_threads = 72,
     .thread_next = 168, .thread_interpreter = 176, .thread_frame = 184, .thread_id = 192,
     .frame_previous = 232, .frame_code = 240, .frame_instruction = 248, .frame_owner = 264,
     .code_filename = 280, .code_plain_name = 288, .code_name = 296, .code_lines = 304, .code_firstlineno = 312, .code_bytes = 344,
     .string_ascii = 560},
    {.version = 0x30e, .interpreters_head = 40, .interpreter_next = 64, .interpreter_threads = 72,
     .thread_next = 192, .thread_interpreter = 200, .thread_frame = 208, .thread_id = 216,
     .frame_previous = 256, .frame_code = 264, .frame_instruction = 272, .frame_owner = 288,
     .code_filename = 320, .code_plain_name = 328, .code_name = 336, .code_lines = 344, .code_firstlineno = 352, .code_bytes = 384,
     .frame_copy = 304, .code_copies = 392, .string_ascii = 640},
    {.version = 0x30f, .interpreters_head = 40, .interpreter_next = 64, .interpreter_threads = 72,
     .thread_next = 192, .thread_interpreter = 200, .thread_frame = 208, .thread_base = 216, .thread_id = 240,
     .frame_previous = 320, .frame_code = 328, .frame_instruction = 336, .frame_owner = 352,
     .code_filename = 384, .code_plain_name = 392, .code_name = 400, .code_lines = 408, .code_firstlineno = 416, .code_bytes = 448,
     .frame_copy = 368, .code_copies = 456, .string_ascii = 736},
};
// clang-format on

// A thread's id, flags, a lock and two reference counts in place of one (PyObject, Include/object.h).
#define OBJECT_MORE 16

Bool jm_python_apply_debug_offsets(PythonLayout *layout, Addr runtime)
{
    HChar cookie[8];
    UWord version, is_free_threaded;
    if (!jm_read_bytes(runtime, cookie, sizeof cookie) || memcmp(cookie, "xdebugpy", 8) != 0)
        return False;
    if (!jm_read_word(runtime + 8, &version) || !jm_read_word(runtime + 16, &is_free_threaded))
        return False;
    const PythonLayout *at = NULL;
    for (UInt i = 0; i < sizeof debug_positions / sizeof debug_positions[0]; i++)
        if (debug_positions[i].version == version >> 16)
            at = &debug_positions[i];
    PythonLayout published = *layout;
    if (!at || at->version != layout->version)
        return False;
    const SizeT first = offsetof(PythonLayout, interpreters_head);
    for (SizeT field = first; field < sizeof published; field += sizeof(UShort)) {
        const UShort position = *(const UShort *)((const UChar *)at + field);
        UWord value;
        if (position && (!jm_read_word(runtime + position, &value) || value > 0xffff))
            return False;
        if (position)
            *(UShort *)((UChar *)&published + field) = value;
    }
    // The two words before a string's end are read (set_end() in code.c), so they must lie inside its object.
    if (published.string_ascii < 2 * sizeof(ULong) || published.string_ascii > 0xfff)
        return False;
    published.string_compact = published.string_ascii + 16; // utf8_length and utf8 (Include/cpython/unicodeobject.h)
    published.object_more = is_free_threaded ? OBJECT_MORE : 0;
    *layout = published;
    return True;
}

// First lines and tables are untrusted; their sums fit into a Long.

// Table of pairs (bytes of code, lines): Objects/lnotab_notes.txt of 3.6 to 3.9.
static Long line_of_lnotab(const UChar *table, SizeT n, Int at, LinePlace *p)
{
    for (; p->at + 1 < n && p->end + table[p->at] <= at; p->at += 2) {
        p->end += table[p->at];
        p->line += (signed char)table[p->at + 1];
    }
    return p->line;
}

// Table of pairs (bytes of code, lines), each a range; -128 marks a range without a line. Objects/lnotab_notes.txt of
// 3.10.
static Long line_of_3_10(const UChar *table, SizeT n, Int at, LinePlace *p)
{
    for (; p->at + 1 < n; p->at += 2) {
        const Int delta = (signed char)table[p->at + 1];
        if (at < p->end + table[p->at])
            return delta == -128 ? 0 : p->line + delta;
        p->end += table[p->at];
        p->line += delta == -128 ? 0 : delta;
    }
    return 0;
}

// Groups of six bits, least significant first; bit 6 is set if more follow.
static UInt varint(const UChar *table, SizeT n, SizeT *i)
{
    UInt value = 0;
    for (UInt shift = 0; *i < n && shift < 32; shift += 6) {
        UChar byte = table[(*i)++];
        value |= (UInt)(byte & 63) << shift;
        if (!(byte & 64))
            break;
    }
    return value;
}

// Table of entries: a start byte (bit 7 set, kind, code units) and operands of the kind. Objects/locations.md of 3.11.
static Long line_of_3_11(const UChar *table, SizeT n, Int at, LinePlace *p)
{
    while (p->at < n && (table[p->at] & 128)) {
        const UInt kind = table[p->at] >> 3 & 15;
        const Long end = p->end + 2 * ((table[p->at] & 7) + 1);
        SizeT i = p->at + 1;
        Long line = p->line;
        if (kind == 13 || kind == 14) {
            UInt value = varint(table, n, &i);
            line += value & 1 ? -(Long)(value >> 1) : (Long)(value >> 1);
        } else if (kind >= 10 && kind <= 12) {
            line += kind - 10;
        }
        if (at < end)
            return kind == 15 ? 0 : line;
        while (i < n && !(table[i] & 128)) // columns
            i++;
        *p = (LinePlace){i, end, line};
    }
    return 0;
}

UInt jm_python_line(LineTable kind, const UChar *table, SizeT n, Int first, Int at, LinePlace *from)
{
    if (at < from->end)
        *from = (LinePlace){0};
    const Long line = first + (at < 0                 ? 0
                               : kind == LINES_LNOTAB ? line_of_lnotab(table, n, at, from)
                               : kind == LINES_3_10   ? line_of_3_10(table, n, at, from)
                                                      : line_of_3_11(table, n, at, from));
    return line > 0 && line <= 0x7fffffff ? line : first > 0 ? first : 0;
}
