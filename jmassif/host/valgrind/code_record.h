// SPDX-License-Identifier: GPL-2.0-or-later
//
// A translation that is kept, with the program's bytes it was made from. It is valid only where these bytes are equal.

#ifndef JM_CODE_RECORD_H
#define JM_CODE_RECORD_H

#include "host/valgrind/compat.h"

typedef struct {
    Addr address; // of the program's code
    UInt n_host;
    UShort n_guest;    // bytes of the program, from there on, that were translated
    UShort n_compared; // n_guest, and the bytes behind that VEX may have read
    VexTranslateResult result;
} CodeRecord;

// Fill in the record from VEX's result; `mapping` contains the code. False if the translation cannot be kept: it has
// several extents, or bytes that cannot be read.
Bool jm_code_record_take(CodeRecord *record, const VexGuestExtents *extents, const NSegment *mapping);

// Fill in VEX's extents from the record.
void jm_code_record_give(const CodeRecord *record, VexGuestExtents *extents);

// The program's bytes kept with the record: their number, a copy of them, and a comparison of such a copy with the
// bytes at the address now.
SizeT jm_code_record_program_bytes(const CodeRecord *record);
void jm_code_record_copy_program(const CodeRecord *record, UChar *to);
Bool jm_code_record_is_same_program(const CodeRecord *record, const NSegment *mapping, const UChar *bytes);

#endif
