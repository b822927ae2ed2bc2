// SPDX-License-Identifier: GPL-2.0-or-later
//
// Types that the recorder shares with its host, under the names that Valgrind gives them: a file may include this and
// Valgrind's headers too, as C11 allows a typedef to be repeated.

#pragma once

#include <stdarg.h>
#include <stddef.h>

typedef unsigned char UChar;
typedef signed char Char;
typedef char HChar; // text for people, and bytes of names
typedef unsigned short UShort;
typedef signed short Short;
typedef unsigned int UInt;
typedef signed int Int;
typedef unsigned long long int ULong;
typedef signed long long int Long;
typedef unsigned long UWord;
typedef signed long Word;
typedef UWord Addr;
typedef unsigned long SizeT;
typedef signed long SSizeT;
typedef unsigned int ThreadId; // from 1; dense
typedef unsigned char Bool;
#ifndef True
#define True ((Bool)1)
#endif
#ifndef False
#define False ((Bool)0)
#endif

#ifndef LIKELY
#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#endif

// `to` is a power of two.
#define JM_ROUND_DOWN(n, to) ((n) & ~((UWord)(to)-1))
#define JM_ROUND_UP(n, to)   JM_ROUND_DOWN((n) + (UWord)(to)-1, to)

static inline ULong jm_smaller(ULong a, ULong b)
{
    return a < b ? a : b;
}

static inline ULong jm_larger(ULong a, ULong b)
{
    return a > b ? a : b;
}

static inline Bool jm_is_power_of_two(ULong n)
{
    return (n & (n - 1)) == 0;
}
