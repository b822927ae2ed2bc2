// SPDX-License-Identifier: GPL-2.0-or-later
//
// From any frame to its caller's: by the object's unwind table, whatever it says; by the registers that a signal's
// frame has saved; by a table that only the core has; and where there is none, by what a frame looks like. Every read
// is checked, so the stack may hold anything.

#ifndef JM_UNWIND_STEP_H
#define JM_UNWIND_STEP_H

#include "stack/dwarf.h"

typedef struct {
    Registers registers; // of them the stack and the frame pointer are always asked for
    Addr ip;             // as stacks are told: a call's return address less one, so that it lies inside the call
    Bool is_call;        // else it is where the thread is, or was when a signal came
    Bool is_innermost;
    Bool is_partial;   // registers are missing that the thread has: what needs them is not guessed
    Bool has_no_table; // that is known; else it is looked for
    Bool asked_core;   // on the way here
    Bool guessed;      // likewise: without any table
    Bool scanned;      // likewise: even without a frame pointer
    Addr saved_at;     // where the last step found the caller's frame pointer, and beside it the return address; 0:
                       // elsewhere
} Cursor;

typedef enum {
    AT_CALLER,
    AT_OUTERMOST,  // this frame has none
    NO_FRAME,      // nor is this one a frame: there is no code at its address
    LACKS_REGISTER // and the cursor is a partial one
} Step;

Step jm_unwind_step(Cursor *c);

// Whether the frame at this address (as stacks are told) was made by a signal: its caller did not call.
Bool jm_unwind_is_signal_frame(Addr ip);

#endif
