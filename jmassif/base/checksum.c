// SPDX-License-Identifier: GPL-2.0-or-later
//
// Two interleaved sums, of the even and of the odd words: no multiplication waits for the previous one. Each step is a
// bijection of the sum and of the word, so two texts that differ in one word never have the same sum.

#include "base/checksum.h"
#include "base/table.h"

#define STEP 0x9e3779b97f4a7c15ULL // the golden ratio (Knuth); must be odd

static inline ULong add_word(ULong sum, ULong word)
{
    sum = (sum ^ word) * STEP;
    return sum ^ sum >> 29;
}

ULong jm_checksum(const void *bytes, SizeT n_bytes, ULong seed)
{
    const UChar *p = bytes;
    ULong sum = add_word(seed, n_bytes), other = STEP;
    for (; n_bytes >= 2 * sizeof(ULong); n_bytes -= 2 * sizeof(ULong), p += 2 * sizeof(ULong)) {
        sum = add_word(sum, ((const UnalignedWord *)p)[0]);
        other = add_word(other, ((const UnalignedWord *)p)[1]);
    }
    if (n_bytes >= sizeof(ULong)) {
        sum = add_word(sum, *(const UnalignedWord *)p);
        n_bytes -= sizeof(ULong);
        p += sizeof(ULong);
    }
    ULong rest = 0;
    for (; n_bytes > 0; n_bytes--)
        rest = rest << 8 | *p++;
    return jm_hash(add_word(add_word(sum, other), rest));
}
