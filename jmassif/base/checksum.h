// SPDX-License-Identifier: GPL-2.0-or-later
//
// 64-bit checksum of data that the recorder itself reads back, at about half a nanosecond per word; it detects damage,
// not forgery. Comparison and copies of such data.

#ifndef JM_CHECKSUM_H
#define JM_CHECKSUM_H

#include "host/types.h"

// Compute a checksum; different seeds give different checksums of the same bytes. A change within one aligned word
// always changes the checksum.
ULong jm_checksum(const void *bytes, SizeT n_bytes, ULong seed);

// Comparison and copying in words at any alignment. The core's functions go byte by byte if two places are aligned
// differently, as records of a file are.
typedef ULong __attribute__((aligned(1), may_alias)) UnalignedWord;

static inline Bool jm_words_same(const void *a, const void *b, SizeT n_bytes)
{
    const UChar *p = a, *q = b;
    for (; n_bytes >= sizeof(ULong); n_bytes -= sizeof(ULong), p += sizeof(ULong), q += sizeof(ULong))
        if (*(const UnalignedWord *)p != *(const UnalignedWord *)q)
            return False;
    for (; n_bytes > 0; n_bytes--)
        if (*p++ != *q++)
            return False;
    return True;
}

// Copy between places that do not overlap. The barrier keeps the compiler from calling memcpy, which would be the
// core's.
static inline void jm_words_copy(void *to, const void *from, SizeT n_bytes)
{
    UChar *p = to;
    const UChar *q = from;
    for (; n_bytes >= sizeof(ULong); n_bytes -= sizeof(ULong), p += sizeof(ULong), q += sizeof(ULong)) {
        *(UnalignedWord *)p = *(const UnalignedWord *)q;
        __asm__ volatile("" ::: "memory");
    }
    for (; n_bytes > 0; n_bytes--) {
        *p++ = *q++;
        __asm__ volatile("" ::: "memory");
    }
}

#endif
