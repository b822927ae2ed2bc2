// SPDX-License-Identifier: GPL-2.0-or-later
//
// The core reads inlined calls of each object file with debug information. Those of the C library, which most machines
// with Valgrind have, take a quarter of a small program's start and name only its internal helpers. They are skipped
// unless --read-inline-info=yes asks for them: the linker leads the core's reading here (--wrap).

#include "host/valgrind/debug_info.h"

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

static UInt n_read;

UInt jm_debug_info_n_read(void)
{
    return n_read;
}

#if defined(WRAP_READ_DEBUG_INFO)

static Bool is_c_library(const HChar *path)
{
    static const HChar *const names[] = {"libc.so", "libc-2.", "libm.so", "libm-2.", "ld-linux", "ld-2."};
    for (UInt i = 0; i < sizeof names / sizeof *names; i++)
        if (VG_(strncmp)(VG_(basename)(path), names[i], VG_(strlen)(names[i])) == 0)
            return True;
    return False;
}

Bool REAL_READ_DEBUG_INFO(DebugInfo *info);
__typeof__(REAL_READ_DEBUG_INFO) WRAP_READ_DEBUG_INFO;

Bool WRAP_READ_DEBUG_INFO(DebugInfo *info)
{
    const HChar *path = VG_(DebugInfo_get_filename)(info);
    const Bool asked_for = VG_(clo_read_inline_info);
    if (asked_for == YES_BY_DEFAULT && path && is_c_library(path))
        VG_(clo_read_inline_info) = False;
    Bool is_read = REAL_READ_DEBUG_INFO(info);
    n_read++;
    VG_(clo_read_inline_info) = asked_for;
    return is_read;
}

#endif

// From 3.22 on the core reads a separate debug file at the first look-up of an address, but searches functions to wrap
// when an object file is mapped, or when the file with their wrappers is. The loader's function behind dlopen has a
// symbol only in the separate file, and its wrapper is mapped by the loader.
void jm_debug_info_read_loader(Addr first_instruction)
{
    const HChar *name;
    VG_(get_fnname)(VG_(current_DiEpoch)(), first_instruction, &name);
}
