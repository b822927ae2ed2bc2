// SPDX-License-Identifier: GPL-2.0-or-later
//
// Bytes compared and copied in words, wherever they lie: the core's own functions go byte by byte where two places are
// not aligned alike, as records of a file are not.

#ifndef JM_WORDS_H
#define JM_WORDS_H

#include "base/compat.h"

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

// To another place. The compiler must not make a call of memcpy of it, which the core brings.
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
