// SPDX-License-Identifier: GPL-2.0-or-later
//
// One step from any frame to its caller, with all registers. Sources, in this order: the object's unwind table, the
// registers saved in a signal frame, a table that only the core has, and guesses from the contents of the stack. Every
// read is checked, so the stack may hold anything.

#pragma once

#include "unwind/dwarf.h"

typedef struct {
    Registers registers; // SP and FP are read even if unknown
    Addr ip;             // as in traces: a return address minus one, which lies inside the call
    Bool is_call;        // ip is from a return address; else the thread's own, or interrupted by a signal
    Bool is_innermost;
    Bool is_partial;   // registers of the thread are missing: return LACKS_REGISTER instead of guessing them
    Bool has_no_table; // known to have no table: skips the search
    Bool scanned;      // a step scanned the stack, without even a frame pointer
    Addr saved_at;     // slot in which the last step found the caller's FP, with the return address beside it; 0:
                       // not found so
} Cursor;

typedef enum {
    AT_CALLER,
    AT_OUTERMOST,  // the frame has no caller
    NO_FRAME,      // no code at ip: not a frame either
    LACKS_REGISTER // only with is_partial
} Step;

// Call when mappings change.
void jm_code_forget(void);

// Moves the cursor to the caller. Unless AT_CALLER is returned, its registers and ip stay as they are.
Step jm_unwind_step(Cursor *c);
