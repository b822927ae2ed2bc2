// SPDX-License-Identifier: GPL-2.0-or-later
//
// When an object file is mapped, the core matches the name of each of its functions with each pattern of the functions
// that are replaced or wrapped: 70 in objects of any name. It measures both strings each time, and PyTorch has 300,000
// functions with long names. Most differ from the pattern in their first characters, which lead to no other result
// whatever follows; so the linker leads the core's calls here (--wrap). The core's own way also takes exponential time
// where a pattern has many stars, and patterns come from users' rules.

#include "base/compat.h"

__typeof__(VG_(string_match)) __wrap_vgPlain_string_match;

// Whether one character fits what stands in the pattern. `*n`: how much of the pattern that is.
static Bool fits(const HChar *pattern, HChar c, UInt *n)
{
    *n = 1;
    if (*pattern == '?')
        return True;
    if (*pattern == '\\' && pattern[1]) {
        *n = 2;
        return pattern[1] == c;
    }
    return *pattern == c;
}

// When nothing fits any more, only the last star can take more: what those before it took is as good as any.
Bool __wrap_vgPlain_string_match(const HChar *pattern, const HChar *string)
{
    const HChar *after_star = NULL, *taken = NULL;
    while (*string) {
        UInt n;
        if (*pattern == '*') {
            after_star = ++pattern;
            taken = string;
        } else if (*pattern && fits(pattern, *string, &n)) {
            pattern += n;
            string++;
        } else if (after_star) {
            pattern = after_star;
            string = ++taken;
        } else {
            return False;
        }
    }
    while (*pattern == '*')
        pattern++;
    return !*pattern;
}
