// SPDX-License-Identifier: GPL-2.0-or-later
//
// The core reads inlined calls of each object file with debug information. Those of the C library, which most machines
// with Valgrind have, take a quarter of a small program's start and name only its internal helpers. The core reads them
// after the object's unwind tables, while it is mapped, so they are skipped there unless --read-inline-info=yes asks
// for them.

#include "host/valgrind/debug_info.h"
#include "base/text.h"

#define YES_BY_DEFAULT 2 // the core's option sets 0 or 1

void jm_debug_info_init(void)
{
    VG_(clo_read_inline_info) = YES_BY_DEFAULT;
}

void jm_debug_info_keep_little(void)
{
    if (VG_(clo_read_inline_info) == YES_BY_DEFAULT)
        VG_(clo_read_inline_info) = False;
}

static Bool is_default; // the user has chosen nothing

void jm_debug_info_reading(const DebugInfo *object)
{
    static const HChar c_library[] = "libc.so*|libc-2.*|libm.so*|libm-2.*|ld-linux*|ld-2.*";
    const HChar *path = VG_(DebugInfo_get_filename)(object);
    const Bool is_skipped = path && jm_text_fits_any(c_library, VG_(basename)(path));
    is_default |= VG_(clo_read_inline_info) == YES_BY_DEFAULT;
    if (is_default)
        VG_(clo_read_inline_info) = is_skipped ? False : YES_BY_DEFAULT;
}

void jm_debug_info_after_map(void)
{
    if (is_default)
        VG_(clo_read_inline_info) = YES_BY_DEFAULT;
}

// From 3.22 on the core reads a separate debug file at the first look-up of an address, but searches functions to wrap
// when an object file is mapped, or when the file with their wrappers is. The loader's function behind dlopen has a
// symbol only in the separate file, and its wrapper is mapped by the loader.
void jm_debug_info_read_loader(Addr first_instruction)
{
    const DiEpoch now = VG_(current_DiEpoch)();
    const DebugInfo *object = VG_(find_DebugInfo)(now, first_instruction);
    const HChar *name;
    if (object)
        jm_debug_info_reading(object);
    VG_(get_fnname)(now, first_instruction, &name);
    jm_debug_info_after_map();
}

// The core matches each name of each function with 70 patterns, and its own function measures both texts each time:
// 5 % of `import torch`, unless the core is patched (packaging/valgrind/patches).
Bool __wrap_vgPlain_string_match(const HChar *pattern, const HChar *text)
{
    return jm_text_fits(pattern, 0, text);
}
