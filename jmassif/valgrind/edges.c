// SPDX-License-Identifier: GPL-2.0-or-later
//
// The core keeps with each translation which others jump to it, in an array, those first that came first. When it gives
// some up, it searches for each from the beginning and takes it out, and all behind it move up: of a function that is
// called in ten thousand places, thousands each time. Their order means nothing but how long the search is. So here
// only every 512th moves up, by 512 places. The linker leads the core's calls here (--wrap).

#include "base/compat.h"

#if defined(REMOVES_EDGES)

#define STRIDE 512 // elements

static UWord edge_bytes; // 0: none was met yet

__typeof__(VG_(newXA)) __real_vgPlain_newXA, __wrap_vgPlain_newXA;
__typeof__(VG_(removeIndexXA)) __real_vgPlain_removeIndexXA, __wrap_vgPlain_removeIndexXA;

XArray *__wrap_vgPlain_newXA(Alloc_Fn_t alloc, const HChar *cost_centre, Free_Fn_t free, Word element_bytes)
{
    if (UNLIKELY(!edge_bytes) && VG_(strcmp)(cost_centre, "transtab.IEA__add") == 0)
        edge_bytes = (UWord)element_bytes;
    return __real_vgPlain_newXA(alloc, cost_centre, free, element_bytes);
}

// From 3.16 to 3.27 two others in the core remove in this way: from ranges of addresses, which have three words and
// must keep their order, and from a debugger's watchpoints, which are few.
void __wrap_vgPlain_removeIndexXA(XArray *array, Word i)
{
    const Word n = VG_(sizeXA)(array);
    const UWord bytes = edge_bytes;
    if (i < 0 || i + STRIDE >= n || !bytes || bytes == 3 * sizeof(UWord) ||
        (UChar *)VG_(indexXA)(array, i + 1) - (UChar *)VG_(indexXA)(array, i) != (Word)bytes) {
        __real_vgPlain_removeIndexXA(array, i);
        return;
    }
    UChar *const first = VG_(indexXA)(array, 0);
    for (; i + STRIDE < n; i += STRIDE)
        VG_(memcpy)(first + i * bytes, first + (i + STRIDE) * bytes, bytes);
    if (i < n - 1)
        VG_(memcpy)(first + i * bytes, first + (n - 1) * bytes, bytes);
    VG_(dropTailXA)(array, 1);
}

#endif
