// SPDX-License-Identifier: GPL-2.0-or-later
//
// Offsets that a stack walk needs in each CPython release: one row per release. Since 3.13 the interpreter publishes
// its own offsets (_Py_DebugOffsets), which take precedence, and which alone have those of free-threaded builds.
// Offsets are in bytes, for 64-bit little-endian builds.

#pragma once

#include "host/types.h"

// Ways to find a thread's innermost frame and to match native frames to Python's.
typedef enum {
    CHAIN_FRAME_OBJECTS, // 3.6-3.10: PyFrameObjects; one native evaluator frame each
    CHAIN_CFRAME_ENTRY,  // 3.11: interpreter frames; a _PyCFrame on the evaluator's C stack marks it
    CHAIN_CFRAME_SHIM,   // 3.12: interpreter frames, found through a _PyCFrame; shim frames on the C stack are markers
    CHAIN_SHIM           // 3.13 on: interpreter frames; shim frames on the C stack are markers
} ChainKind;

// Encodings of line tables.
typedef enum { LINES_LNOTAB, LINES_3_10, LINES_3_11 } LineTable;

typedef struct {
    UShort version; // major << 8 | minor
    UChar chain;
    UChar lines;
    UShort interpreters_head; // in _PyRuntime
    UShort interpreter_next;
    UShort interpreter_threads;
    UShort thread_next;
    UShort thread_interpreter;
    UShort thread_id;
    UShort thread_frame;  // or its _PyCFrame
    UShort thread_cframe; // 3.10, 3.11: the chain of records on the C stack; 0 if there is none; only 3.10 needs it
    UShort thread_base;   // 3.15: the frame that ends the chain and marks nothing; 0 before
    UShort root_cframe;   // the last record of the chain of thread_cframe, which marks nothing
    UShort cframe_frame;
    UShort cframe_previous;
    UShort frame_code;
    UShort frame_previous;
    UShort frame_instruction; // f_lasti (int) or a pointer
    UShort frame_owner;       // 0 before 3.11
    UShort frame_is_entry;
    UShort frame_copy;       // free-threaded, 3.14 on: index of the thread's copy of the code, which it runs
    UShort first_shim_owner; // owners from here on are not Python functions
    UShort code_firstlineno;
    UShort code_filename;
    UShort code_name; // the qualified name, before 3.11 the plain one
    UShort code_plain_name;
    UShort code_lines;
    UShort code_bytes;  // the bytes object, since 3.11 the code itself
    UShort code_copies; // of threads: their number, then pointers to them; 0 if there are none
    UShort string_ascii;
    UShort string_compact;
    UShort object_more; // bytes by which a free-threaded build's object heads are larger
} PythonLayout;

// The row of a release; NULL if it is not supported.
const PythonLayout *jm_python_layout(UInt major, UInt minor);

// Replace offsets by those that _Py_DebugOffsets at `runtime` publishes. False if it is missing or implausible.
Bool jm_python_apply_debug_offsets(PythonLayout *layout, Addr runtime);

// A place in a line table: the entry at byte `at` describes the code from byte `end` on. Zeroed at the table's start.
typedef struct {
    SizeT at;
    Long end, line; // lines from the code object's first
} LinePlace;

// Line of the instruction at byte offset `at`, from a table of `n` bytes; `first`, the code object's first line, if the
// table has none. Reads only the table, from where the last search has ended if it can: a module's table is long.
UInt jm_python_line(LineTable kind, const UChar *table, SizeT n, Int first, Int at, LinePlace *from);
