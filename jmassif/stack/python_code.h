// SPDX-License-Identifier: GPL-2.0-or-later
//
// What an instruction of a Python code object is shown as: its function, file and line.

#ifndef JM_PYTHON_CODE_H
#define JM_PYTHON_CODE_H

#include "base/compat.h"
#include "stack/python_layout.h"
#include "stack/symbol.h"

// `type`: PyCode_Type; 0: not known. The layout must stay where it is.
void jm_python_code_start(const PythonLayout *layout, Addr type);

// From here on one stack is walked, while which the program stands still.
void jm_python_code_begin(void);

// The frame of the instruction at byte `at` of a code object; 0: not a Python function, or not to be read.
FrameId jm_python_code_frame(Addr code, Int at);

// The bytes of a structure that hold these fields, of a word at most. A release may have its fields in any order, and
// one that publishes where they are may say anything.
SizeT jm_python_end_of(const UShort *fields, UInt n);

ULong jm_python_code_unreadable(void); // so many times one was asked for that could not be read
void jm_python_code_stats(void);

#endif
