// SPDX-License-Identifier: GPL-2.0-or-later
//
// The functions of base/libc.h that the core does not define. The core has memcpy, memmove and memset under these
// names, for the compiler's sake.

#include "base/libc.h"
#include "host/valgrind/compat.h"

SizeT strlen(const HChar *s)
{
    return VG_(strlen)(s);
}

Int strcmp(const HChar *a, const HChar *b)
{
    return VG_(strcmp)(a, b);
}

Int strncmp(const HChar *a, const HChar *b, SizeT n)
{
    return VG_(strncmp)(a, b, n);
}

HChar *strchr(const HChar *s, Int c)
{
    return VG_(strchr)(s, c);
}

HChar *strrchr(const HChar *s, Int c)
{
    return VG_(strrchr)(s, c);
}

HChar *strstr(const HChar *s, const HChar *part)
{
    return VG_(strstr)(s, part);
}

HChar *strpbrk(const HChar *s, const HChar *accepted)
{
    return VG_(strpbrk)(s, accepted);
}

HChar *strcpy(HChar *to, const HChar *from)
{
    return VG_(strcpy)(to, from);
}

HChar *strncpy(HChar *to, const HChar *from, SizeT n)
{
    return VG_(strncpy)(to, from, n);
}

Int memcmp(const void *a, const void *b, SizeT n)
{
    return VG_(memcmp)(a, b, n);
}
