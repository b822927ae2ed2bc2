// SPDX-License-Identifier: GPL-2.0-or-later
//
// Convert strings of one, two or four bytes per code point to UTF-8; see text.h.

#include "python/text.h"
#include "base/text.h"

void jm_python_copy_str(const Str *str, HChar *to, UInt size)
{
    UInt n = 0;
    for (UWord i = 0; i < str->length && n + JM_UTF8_BYTES + 1 < size; i++) {
        UInt c = str->width == 1   ? ((const UChar *)str->data)[i]
                 : str->width == 2 ? ((const UShort *)str->data)[i]
                                   : ((const UInt *)str->data)[i];
        // Lone surrogates stand for bytes of a file name that is not UTF-8 (PEP 383).
        if (c >= 0xdc80 && c <= 0xdcff)
            to[n++] = c & 0xff;
        else
            n += jm_text_put_utf8(to + n, c);
    }
    to[n] = 0;
}
