// SPDX-License-Identifier: GPL-2.0-or-later
//
// A translation that is kept, and the program's bytes of which it was made: it is good where they are the very ones.

#ifndef JM_CODE_RECORD_H
#define JM_CODE_RECORD_H

#include "base/compat.h"

typedef struct {
    Addr address; // of the program's code
    UInt n_host;
    UShort n_guest;    // bytes of the program from there on that it was made of
    UShort n_compared; // these, and what VEX may have looked at behind them
    VexTranslateResult result;
} CodeRecord;

// Copies what the translation was made of. False if it cannot be kept: it has more than one extent, or bytes that
// cannot be read. `mapping` holds its code.
Bool jm_code_record_take(CodeRecord *record, const VexGuestExtents *extents, const NSegment *mapping);

// The same to the core.
void jm_code_record_give(const CodeRecord *record, VexGuestExtents *extents);

// The program's bytes that are kept with it: how many, to write them to a place, and whether those at a place are what
// is at its address now.
SizeT jm_code_record_program_bytes(const CodeRecord *record);
void jm_code_record_copy_program(const CodeRecord *record, UChar *to);
Bool jm_code_record_is_same_program(const CodeRecord *record, const NSegment *mapping, const UChar *bytes);

#endif
