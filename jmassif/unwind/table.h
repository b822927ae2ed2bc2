// SPDX-License-Identifier: GPL-2.0-or-later
//
// Rows of an object file's unwind table (.eh_frame; DWARF 5, section 6.4, and the LSB's "Exception Frames"). A row
// belongs to a code address and locates the caller's frame and registers. .eh_frame is mapped with the program, because
// exceptions need it, so no file is read.

#ifndef JM_UNWIND_TABLE_H
#define JM_UNWIND_TABLE_H

#include "unwind/dwarf.h"

// Location of the caller's value of a register. CFA: the canonical frame address, at which the caller's frame begins.
typedef enum {
    KEPT,          // still in the register
    UNDEFINED,     // lost; a frame without a return address is the outermost
    AT_CFA,        // saved at an offset from the CFA
    IS_CFA,        // the CFA plus an offset
    IN_REGISTER,   // in another register
    AT_EXPRESSION, // saved at an expression's value; the expression starts with its length and gets the CFA
    IS_EXPRESSION, // an expression's value
} Where;

typedef struct {
    UChar where[JM_N_REGISTERS]; // a Where
    Long value[JM_N_REGISTERS];  // an offset, a register, or an expression's address
    ULong cfa_register;
    Long cfa_offset;
    Addr cfa_expression; // 0: use cfa_register and cfa_offset
    UInt return_address; // a register number, DWARF's return address column
    Bool is_signal_frame;
} UnwindRow;

// Fills `*row`. False if no table covers the address, or its entry has an unknown form.
Bool jm_unwind_row(Addr ip, UnwindRow *row);

#endif
