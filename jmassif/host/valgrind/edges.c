// SPDX-License-Identifier: GPL-2.0-or-later
//
// The core keeps an array of incoming jumps with each translation, in order of arrival. When it discards a translation,
// it searches each array from the beginning, removes the jump, and moves all elements behind it: thousands each time
// for a function that is called in ten thousand places. The order decides only the length of the search, so here only
// every 512th element moves, by 512 places. The linker leads the core's calls here (--wrap).

#include "host/valgrind/compat.h"

#if defined(REMOVES_EDGES)

#define STRIDE 512 // elements

static UWord edge_bytes; // 0 until the first such array

__typeof__(VG_(newXA)) __real_vgPlain_newXA, __wrap_vgPlain_newXA;
__typeof__(VG_(removeIndexXA)) __real_vgPlain_removeIndexXA, __wrap_vgPlain_removeIndexXA;

XArray *__wrap_vgPlain_newXA(Alloc_Fn_t alloc, const HChar *cost_centre, Free_Fn_t free, Word element_bytes)
{
    if (UNLIKELY(!edge_bytes) && VG_(strcmp)(cost_centre, "transtab.IEA__add") == 0)
        edge_bytes = (UWord)element_bytes;
    return __real_vgPlain_newXA(alloc, cost_centre, free, element_bytes);
}

// The arrays are recognised by the size of their elements. From 3.16 to 3.27 the core removes in this way also from
// address ranges, which have three words and must keep their order, and from a debugger's watchpoints, which are few.
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
