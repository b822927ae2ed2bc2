// SPDX-License-Identifier: GPL-2.0-or-later
//
// Where CPython's releases keep what a stack walk needs: one row per release, plus, from 3.13 on, the offsets that the
// interpreter publishes about itself (_Py_DebugOffsets), which take precedence. All offsets in bytes, for 64-bit
// little-endian builds with the GIL.

#ifndef JM_PYTHON_LAYOUT_H
#define JM_PYTHON_LAYOUT_H

#include "base/compat.h"

// How a thread's innermost frame is found, and how native frames are matched to it.
typedef enum {
    CHAIN_FRAME_OBJECTS, // 3.6-3.10: PyFrameObjects; one native evaluator frame each
    CHAIN_CFRAME_ENTRY,  // 3.11: interpreter frames; the evaluator's frame is marked by a _PyCFrame on its C stack
    CHAIN_CFRAME_SHIM,   // 3.12: interpreter frames, found through a _PyCFrame; marked by shim frames on the C stack
    CHAIN_SHIM           // 3.13 on: interpreter frames; marked by shim frames on the C stack
} ChainKind;

// How the line of an instruction is encoded.
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
    UShort thread_cframe; // 3.10-3.12: the chain of records on the C stack; 0: none
    UShort thread_base;   // 3.15: the frame that ends the chain and marks nothing; 0: none
    UShort root_cframe;   // the last element of that chain, which marks nothing
    UShort cframe_frame;
    UShort cframe_previous;
    UShort frame_code;
    UShort frame_previous;
    UShort frame_instruction; // f_lasti (int) or a pointer
    UShort frame_owner;       // 0: none
    UShort frame_is_entry;
    UShort first_shim_owner; // owners from here on are no Python functions
    UShort code_firstlineno;
    UShort code_filename;
    UShort code_name; // the qualified name where there is one
    UShort code_plain_name;
    UShort code_lines;
    UShort code_bytes; // the bytes object, or the code itself
    UShort string_ascii;
    UShort string_compact;
} PythonLayout;

// The row of a release; NULL if it is not known.
const PythonLayout *jm_python_layout(UInt major, UInt minor);

// Replaces what _Py_DebugOffsets at `runtime` says about itself. False: it is not there or cannot be right.
Bool jm_python_apply_debug_offsets(PythonLayout *layout, Addr runtime);

// The line of the instruction at byte offset `at` of a code object whose first line is `first`, from a table of `n`
// bytes; `first` where the table says nothing. Reads no memory but the table.
UInt jm_python_line(LineTable kind, const UChar *table, SizeT n, Int first, Int at);

#endif
