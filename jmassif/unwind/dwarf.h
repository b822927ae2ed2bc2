// SPDX-License-Identifier: GPL-2.0-or-later
//
// Readers of DWARF's two encodings: variable-length numbers (DWARF 5, section 7.6) and expressions, small programs for
// a stack machine that compute a location (section 2.5). Input is untrusted, since unwind tables are also written by
// hand.

#pragma once

#include "host/types.h"

// Register numbers: System V ABI for AMD64, figure 3.36; DWARF for the Arm 64-bit Architecture, section 4.1.
#if defined(__aarch64__)
#define JM_REG_FP      29
#define JM_REG_SP      31
#define JM_REG_RA      30 // the link register
#define JM_N_REGISTERS 32
#else
#define JM_REG_FP      6
#define JM_REG_SP      7
#define JM_REG_RA      16 // the instruction pointer
#define JM_N_REGISTERS 17
#endif

typedef struct {
    Addr value[JM_N_REGISTERS];
    ULong known; // one bit per register
} Registers;

static inline Bool jm_register_is_known(const Registers *r, ULong number)
{
    return number < JM_N_REGISTERS && (r->known >> number & 1);
}

static inline void jm_register_set(Registers *r, UInt number, Addr value)
{
    r->value[number] = value;
    r->known |= 1ULL << number;
}

// A cursor over memory, which must be readable up to `end`. A read past the end returns 0 and sets `failed`, so
// callers check once, after the last read.
typedef struct {
    Addr at, end;
    Bool failed; // read past the end, or an unknown encoding
} DwarfReader;

ULong jm_dwarf_take(DwarfReader *r, UInt bytes); // at most 8
ULong jm_dwarf_take_uleb(DwarfReader *r);
Long jm_dwarf_take_sleb(DwarfReader *r);
void jm_dwarf_skip(DwarfReader *r, ULong bytes);

typedef enum { EVALUATED, EVALUATION_FAILED, EVALUATION_LACKS_REGISTER } Evaluation;

// Evaluates an expression with `first`, unless NULL, on the stack. `*value` is valid only after EVALUATED.
Evaluation jm_dwarf_evaluate(DwarfReader r, const Registers *registers, const Addr *first, Addr *value);
