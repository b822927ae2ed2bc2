// SPDX-License-Identifier: GPL-2.0-or-later
//
// What an instruction of a Python code object is shown as: its function, file and line.

#ifndef JM_PYTHON_CODE_H
#define JM_PYTHON_CODE_H

#include "base/compat.h"
#include "base/table.h"
#include "stack/python_layout.h"
#include "stack/symbol.h"

// `type`: PyCode_Type; 0: not known. The layout must stay where it is.
void jm_python_code_start(const PythonLayout *layout, Addr type);

// From here on one stack with Python frames is walked; meanwhile the program stands still.
void jm_python_code_begin(void);
FrameId jm_python_code_look_at(Addr code, Int at);

// Code objects met lately, at one of the two places that their hash gives them, and the frames of two instructions of
// each: deep imports have the importer's few functions over and over.
typedef struct {
    Addr code;
    ULong walk; // in which it was looked at last
    Int at[2];
    FrameId frames[2]; // of these
} RecentCode;

#define JM_RECENT_CODE_BITS 10
extern RecentCode jm_recent_code[1u << JM_RECENT_CODE_BITS];
extern ULong jm_python_walk; // the number of the walk that is under way

static inline UInt jm_recent_code_place(Addr code)
{
    return jm_place(code, JM_RECENT_CODE_BITS - 1) * 2;
}

// NULL: it is not one of the two.
static inline const FrameId *jm_recent_frame(const RecentCode *recent, Int at)
{
    return recent->at[0] == at ? &recent->frames[0] : recent->at[1] == at ? &recent->frames[1] : NULL;
}

// The frame of the instruction at byte `at` of a code object; 0: not a Python function, or not to be read.
static inline FrameId jm_python_code_frame(Addr code, Int at)
{
    const RecentCode *recent = &jm_recent_code[jm_recent_code_place(code)];
    recent += recent->code != code;
    const Bool is_looked_at = recent->code == code && recent->walk == jm_python_walk;
    const FrameId *frame = is_looked_at ? jm_recent_frame(recent, at) : NULL;
    return frame ? *frame : jm_python_code_look_at(code, at);
}

// The bytes of a structure that hold these fields, of a word at most. A release may have its fields in any order, and
// one that publishes where they are may say anything.
SizeT jm_python_end_of(const UShort *fields, UInt n);

ULong jm_python_code_unreadable(void); // so many times one was asked for that could not be read
void jm_python_code_stats(void);

#endif
