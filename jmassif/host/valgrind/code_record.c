// SPDX-License-Identifier: GPL-2.0-or-later
//
// Comparison of a kept translation with the program. VEX also reads bytes behind the code that it translates, so these
// are compared too.

#include "host/valgrind/code_record.h"
#include "base/checksum.h"
#include "host/valgrind/mapped_code.h"

// VEX reads up to this far beyond the start of an instruction: the 16 bytes that announce a client request, and the
// instruction of the request (amd64: 3 bytes; arm64: 4). The instruction itself is among the translated bytes.
#define LOOKED_AHEAD 20

// Count the program's bytes from the address on that a translation depends on; 0 if they cannot be read.
static SizeT n_to_compare(Addr address, SizeT n_guest, const NSegment *mapping)
{
    const SizeT n_left = mapping->end - address + 1;
    const SizeT n = n_guest + LOOKED_AHEAD < n_left ? n_guest + LOOKED_AHEAD : n_left;
    if (n_guest == 0 || n_guest > n)
        return 0;
    // The bytes read ahead may lie in a page beyond the file's end.
    return jm_mapped_code_can_read(mapping, address, n) ? n : 0;
}

Bool jm_code_record_take(CodeRecord *record, const VexGuestExtents *extents, const NSegment *mapping)
{
    record->address = extents->base[0];
    record->n_guest = extents->len[0];
    record->n_compared = n_to_compare(record->address, record->n_guest, mapping);
    return extents->n_used == 1 && record->n_compared > 0;
}

void jm_code_record_give(const CodeRecord *record, VexGuestExtents *extents)
{
    *extents = (VexGuestExtents){.base = {record->address}, .len = {record->n_guest}, .n_used = 1};
}

SizeT jm_code_record_program_bytes(const CodeRecord *record)
{
    return record->n_compared;
}

void jm_code_record_copy_program(const CodeRecord *record, UChar *to)
{
    jm_words_copy(to, (const void *)record->address, record->n_compared);
}

Bool jm_code_record_is_same_program(const CodeRecord *record, const NSegment *mapping, const UChar *bytes)
{
    return record->n_compared == n_to_compare(record->address, record->n_guest, mapping) &&
           jm_words_same((const void *)record->address, bytes, record->n_compared);
}
