// SPDX-License-Identifier: GPL-2.0-or-later
//
// What was inlined where is read for each object file with debug information. The C library's, which most machines with
// Valgrind have, takes a quarter of a small program's start, and tells of its inner helpers only. It is left out unless
// --read-inline-info=yes asks for it: the linker leads the core's reading here (--wrap).

#include "valgrind/debug_info.h"

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

#if defined(READS_SYMBOLS_LATE)

void VG_(di_load_di)(DebugInfo *info);

// What is wrapped is looked for when an object file is mapped, among the symbols that the core has then: not those of a
// separate debug file, which it reads when somebody asks for an address. The dynamic loader's function behind dlopen
// has a symbol only there, so the loader's are read at once. Its file is small.
void jm_debug_info_read_early(const DebugInfo *info)
{
    const HChar *path = VG_(DebugInfo_get_filename)(info);
    if (path && VG_(strncmp)(VG_(basename)(path), "ld-", 3) == 0)
        VG_(di_load_di)((DebugInfo *)info);
}

#else

void jm_debug_info_read_early(const DebugInfo *info) {}

#endif
