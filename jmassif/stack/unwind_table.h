// SPDX-License-Identifier: GPL-2.0-or-later
//
// What an object file's unwind table (.eh_frame; DWARF 5, section 6.4, and the LSB's "Exception Frames") says of a code
// address: where the caller's frame begins, and where the caller's registers are. .eh_frame is mapped with the program,
// since exceptions need it, so nothing is read from files.

#ifndef JM_UNWIND_TABLE_H
#define JM_UNWIND_TABLE_H

#include "stack/dwarf.h"

// Where the caller's value of a register is. CFA: the canonical frame address, where the caller's frame begins.
typedef enum {
    KEPT,          // still in the register
    UNDEFINED,     // lost; of the return address: there is no caller
    AT_CFA,        // saved, so many bytes from the CFA
    IS_CFA,        // it is the CFA and so many bytes
    IN_REGISTER,   // in another register
    AT_EXPRESSION, // saved where an expression says, which starts with its length and is given the CFA
    IS_EXPRESSION,
} Where;

typedef struct {
    UChar where[JM_N_REGISTERS]; // Where
    Long value[JM_N_REGISTERS];  // an offset, a register, or an expression's address
    ULong cfa_register;
    Long cfa_offset;
    Addr cfa_expression; // 0: by register and offset
    UInt return_address; // its column
    Bool is_signal_frame;
} UnwindRow;

// False: no table covers the address, or what it says is not known.
Bool jm_unwind_row(Addr ip, UnwindRow *row);

#endif
