// SPDX-License-Identifier: GPL-2.0-or-later
//
// The offsets are those of CPython's own headers (Include/internal/pycore_runtime.h, pycore_interp.h, pycore_frame.h,
// Include/cpython/code.h and their predecessors) of the last patch release of each minor; within a minor they do not
// change.

#include "stack/python_layout.h"
#include "base/client_memory.h"

// clang-format off
static const PythonLayout layouts[] = {
    {.version = 0x306, .chain = CHAIN_FRAME_OBJECTS, .lines = LINES_LNOTAB, .interpreter_threads = 8,
     .thread_next = 8, .thread_interpreter = 16, .thread_id = 152, .thread_frame = 24,
     .frame_code = 32, .frame_previous = 24, .frame_instruction = 120,
     .code_firstlineno = 36, .code_filename = 96, .code_name = 104, .code_plain_name = 104, .code_lines = 112, .code_bytes = 40,
     .string_ascii = 48, .string_compact = 72},
    {.version = 0x307, .chain = CHAIN_FRAME_OBJECTS, .lines = LINES_LNOTAB, .interpreters_head = 24, .interpreter_threads = 8,
     .thread_next = 8, .thread_interpreter = 16, .thread_id = 176, .thread_frame = 24,
     .frame_code = 32, .frame_previous = 24, .frame_instruction = 104,
     .code_firstlineno = 36, .code_filename = 96, .code_name = 104, .code_plain_name = 104, .code_lines = 112, .code_bytes = 40,
     .string_ascii = 48, .string_compact = 72},
    {.version = 0x308, .chain = CHAIN_FRAME_OBJECTS, .lines = LINES_LNOTAB, .interpreters_head = 32,
     .interpreter_threads = 8, .thread_next = 8, .thread_interpreter = 16, .thread_id = 176, .thread_frame = 24,
     .frame_code = 32, .frame_previous = 24, .frame_instruction = 104,
     .code_firstlineno = 40, .code_filename = 104, .code_name = 112, .code_plain_name = 112, .code_lines = 120, .code_bytes = 48,
     .string_ascii = 48, .string_compact = 72},
    {.version = 0x309, .chain = CHAIN_FRAME_OBJECTS, .lines = LINES_LNOTAB, .interpreters_head = 32,
     .interpreter_threads = 8, .thread_next = 8, .thread_interpreter = 16, .thread_id = 176, .thread_frame = 24,
     .frame_code = 32, .frame_previous = 24, .frame_instruction = 104,
     .code_firstlineno = 40, .code_filename = 104, .code_name = 112, .code_plain_name = 112, .code_lines = 120, .code_bytes = 48,
     .string_ascii = 48, .string_compact = 72},
    {.version = 0x30a, .chain = CHAIN_FRAME_OBJECTS, .lines = LINES_3_10, .interpreters_head = 32,
     .interpreter_threads = 8, .thread_next = 8, .thread_interpreter = 16, .thread_id = 176, .thread_frame = 24,
     .thread_cframe = 48, .root_cframe = 264, .cframe_previous = 8,
     .frame_code = 32, .frame_previous = 24, .frame_instruction = 96,
     .code_firstlineno = 40, .code_filename = 104, .code_name = 112, .code_plain_name = 112, .code_lines = 120, .code_bytes = 48,
     .string_ascii = 48, .string_compact = 72},
    {.version = 0x30b, .chain = CHAIN_CFRAME_ENTRY, .lines = LINES_3_11, .interpreters_head = 40,
     .interpreter_threads = 16, .thread_next = 8, .thread_interpreter = 16, .thread_id = 152, .thread_frame = 56,
     .thread_cframe = 56, .root_cframe = 336, .cframe_frame = 8, .cframe_previous = 16,
     .frame_code = 32, .frame_previous = 48, .frame_instruction = 56, .frame_owner = 69, .frame_is_entry = 68, .first_shim_owner = 3,
     .code_firstlineno = 72, .code_filename = 112, .code_name = 128, .code_plain_name = 120, .code_lines = 136, .code_bytes = 184,
     .string_ascii = 48, .string_compact = 72},
    {.version = 0x30c, .chain = CHAIN_CFRAME_SHIM, .lines = LINES_3_11, .interpreters_head = 40,
     .interpreter_threads = 72, .thread_next = 8, .thread_interpreter = 16, .thread_id = 136, .thread_frame = 56,
     .cframe_frame = 0, .cframe_previous = 8,
     .frame_code = 0, .frame_previous = 8, .frame_instruction = 56, .frame_owner = 70, .first_shim_owner = 3,
     .code_firstlineno = 68, .code_filename = 112, .code_name = 128, .code_plain_name = 120, .code_lines = 136, .code_bytes = 192,
     .string_ascii = 40, .string_compact = 56},
    {.version = 0x30d, .chain = CHAIN_SHIM, .lines = LINES_3_11, .interpreters_head = 632,
     .interpreter_next = 7264, .interpreter_threads = 7344,
     .thread_next = 8, .thread_interpreter = 16, .thread_id = 152, .thread_frame = 72,
     .frame_code = 0, .frame_previous = 8, .frame_instruction = 56, .frame_owner = 70, .first_shim_owner = 3,
     .code_firstlineno = 68, .code_filename = 112, .code_name = 128, .code_plain_name = 120, .code_lines = 136, .code_bytes = 200,
     .string_ascii = 40, .string_compact = 56},
    {.version = 0x30e, .chain = CHAIN_SHIM, .lines = LINES_3_11, .interpreters_head = 808,
     .interpreter_next = 7272, .interpreter_threads = 7344,
     .thread_next = 8, .thread_interpreter = 16, .thread_id = 152, .thread_frame = 72,
     .frame_code = 0, .frame_previous = 8, .frame_instruction = 56, .frame_owner = 74, .first_shim_owner = 3,
     .code_firstlineno = 68, .code_filename = 112, .code_name = 128, .code_plain_name = 120, .code_lines = 136, .code_bytes = 208,
     .string_ascii = 40, .string_compact = 56},
    {.version = 0x30f, .chain = CHAIN_SHIM, .lines = LINES_3_11, .interpreters_head = 936,
     .interpreter_next = 7264, .interpreter_threads = 7336,
     .thread_next = 8, .thread_interpreter = 16, .thread_id = 176, .thread_frame = 72, .thread_base = 80,
     .frame_code = 0, .frame_previous = 8, .frame_instruction = 56, .frame_owner = 74, .first_shim_owner = 3,
     .code_firstlineno = 68, .code_filename = 112, .code_name = 128, .code_plain_name = 120, .code_lines = 136, .code_bytes = 208,
     .string_ascii = 40, .string_compact = 56},
};
// clang-format on

const PythonLayout *jm_python_layout(UInt major, UInt minor)
{
    for (UInt i = 0; i < sizeof layouts / sizeof layouts[0]; i++)
        if (layouts[i].version == (major << 8 | minor))
            return &layouts[i];
    return NULL;
}

// Positions of the entries inside _Py_DebugOffsets (Include/internal/pycore_debug_offsets.h): they move between minors.
typedef struct {
    UShort version;
    UShort interpreters_head, interpreter_next, interpreter_threads;
    UShort thread_next, thread_interpreter, thread_frame, thread_base, thread_id; // a base of 0: there is none
    UShort frame_previous, frame_code, frame_instruction, frame_owner;
    UShort code_filename, code_plain_name, code_name, code_lines, code_firstlineno, code_bytes;
    UShort string_ascii;
} DebugPositions;

static const DebugPositions debug_positions[] = {
    {0x30d, 40, 64, 72, 168, 176, 184, 0, 192, 232, 240, 248, 264, 280, 288, 296, 304, 312, 344, 560},
    {0x30e, 40, 64, 72, 192, 200, 208, 0, 216, 256, 264, 272, 288, 320, 328, 336, 344, 352, 384, 640},
    {0x30f, 40, 64, 72, 192, 200, 208, 216, 240, 320, 328, 336, 352, 384, 392, 400, 408, 416, 448, 736},
};

static Bool published(Addr runtime, UShort position, UShort *offset)
{
    UWord value;
    if (!jm_read_word(runtime + position, &value) || value > 0xffff)
        return False;
    *offset = value;
    return True;
}

Bool jm_python_apply_debug_offsets(PythonLayout *layout, Addr runtime)
{
    HChar cookie[8];
    UWord version, is_free_threaded;
    if (!jm_read_bytes(runtime, cookie, sizeof cookie) || VG_(memcmp)(cookie, "xdebugpy", 8) != 0)
        return False;
    if (!jm_read_word(runtime + 8, &version) || !jm_read_word(runtime + 16, &is_free_threaded) || is_free_threaded)
        return False; // without the GIL every object has a larger header
    const DebugPositions *at = NULL;
    for (UInt i = 0; i < sizeof debug_positions / sizeof debug_positions[0]; i++)
        if (debug_positions[i].version == version >> 16)
            at = &debug_positions[i];
    PythonLayout told = *layout;
    if (!at || at->version != layout->version || !published(runtime, at->interpreters_head, &told.interpreters_head) ||
        !published(runtime, at->interpreter_next, &told.interpreter_next) ||
        !published(runtime, at->interpreter_threads, &told.interpreter_threads) ||
        !published(runtime, at->thread_next, &told.thread_next) ||
        !published(runtime, at->thread_interpreter, &told.thread_interpreter) ||
        !published(runtime, at->thread_frame, &told.thread_frame) ||
        (at->thread_base && !published(runtime, at->thread_base, &told.thread_base)) ||
        !published(runtime, at->thread_id, &told.thread_id) ||
        !published(runtime, at->frame_previous, &told.frame_previous) ||
        !published(runtime, at->frame_code, &told.frame_code) ||
        !published(runtime, at->frame_instruction, &told.frame_instruction) ||
        !published(runtime, at->frame_owner, &told.frame_owner) ||
        !published(runtime, at->code_filename, &told.code_filename) ||
        !published(runtime, at->code_plain_name, &told.code_plain_name) ||
        !published(runtime, at->code_name, &told.code_name) || !published(runtime, at->code_lines, &told.code_lines) ||
        !published(runtime, at->code_firstlineno, &told.code_firstlineno) ||
        !published(runtime, at->code_bytes, &told.code_bytes) ||
        !published(runtime, at->string_ascii, &told.string_ascii))
        return False;
    told.string_compact = told.string_ascii + 16; // utf8_length and utf8 (Include/cpython/unicodeobject.h)
    *layout = told;
    return True;
}

// ---- lines ---------------------------------------------------------------------------------------------------

// Pairs (bytes of code, lines); Objects/lnotab_notes.txt of 3.6 to 3.9.
static Int line_of_lnotab(const UChar *table, SizeT n, Int line, Int at)
{
    Int address = 0;
    for (SizeT i = 0; i + 1 < n; i += 2) {
        address += table[i];
        if (address > at)
            break;
        line += (signed char)table[i + 1];
    }
    return line;
}

// Pairs (bytes of code, lines), each a range; -128: the range has no line. Objects/lnotab_notes.txt of 3.10.
static Int line_of_3_10(const UChar *table, SizeT n, Int first, Int at)
{
    Int line = first, end = 0;
    for (SizeT i = 0; i + 1 < n; i += 2) {
        Int delta = (signed char)table[i + 1];
        end += table[i];
        if (delta != -128)
            line += delta;
        if (at < end)
            return delta == -128 ? first : line;
    }
    return first;
}

// Groups of six bits, least significant first; bit 6: more follow.
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

// Entries of a start byte (bit 7 set, kind, code units) and what the kind needs. Objects/locations.md of 3.11.
static Int line_of_3_11(const UChar *table, SizeT n, Int first, Int at)
{
    Int line = first, end = 0;
    SizeT i = 0;
    while (i < n && (table[i] & 128)) {
        UInt kind = table[i] >> 3 & 15;
        end += 2 * ((table[i] & 7) + 1);
        i++;
        if (kind == 13 || kind == 14) {
            UInt value = varint(table, n, &i);
            line += value & 1 ? -(Int)(value >> 1) : (Int)(value >> 1);
        } else if (kind >= 10 && kind <= 12) {
            line += kind - 10;
        }
        while (i < n && !(table[i] & 128)) // columns
            i++;
        if (at < end)
            return kind == 15 ? first : line;
    }
    return first;
}

UInt jm_python_line(LineTable kind, const UChar *table, SizeT n, Int first, Int at)
{
    Int line = first;
    if (at >= 0) {
        switch (kind) {
        case LINES_LNOTAB:
            line = line_of_lnotab(table, n, first, at);
            break;
        case LINES_3_10:
            line = line_of_3_10(table, n, first, at);
            break;
        case LINES_3_11:
            line = line_of_3_11(table, n, first, at);
            break;
        }
    }
    return line > 0 ? line : first > 0 ? first : 0;
}
