// SPDX-License-Identifier: GPL-2.0-or-later
//
// When an object file is mapped, the core matches the name of each of its functions with each pattern of the functions
// that are replaced or wrapped: 70 in objects of any name. It measures both strings each time, and PyTorch has 300,000
// functions with long names. Most differ from the pattern in their first characters, which lead to no other result
// whatever follows; so the linker leads the core's calls here (--wrap).

#include "base/compat.h"

Bool __real_vgPlain_string_match(const HChar *pattern, const HChar *string);
__typeof__(VG_(string_match)) __wrap_vgPlain_string_match;

Bool __wrap_vgPlain_string_match(const HChar *pattern, const HChar *string)
{
    while (*pattern && *pattern == *string && *pattern != '*' && *pattern != '?') {
        pattern++;
        string++;
    }
    if (*pattern == '*' || *pattern == '?')
        return __real_vgPlain_string_match(pattern, string);
    return !*pattern && !*string;
}
