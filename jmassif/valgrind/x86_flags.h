// SPDX-License-Identifier: GPL-2.0-or-later
//
// Whether a piece of x86-64 code sets all condition codes before it reads one.

#ifndef JM_X86_FLAGS_H
#define JM_X86_FLAGS_H

#include "base/compat.h"

typedef enum {
    FLAGS_ARE_READ, // or it cannot be told
    FLAGS_STAY,
    FLAGS_ARE_SET, // CF, PF, AF, ZF, SF and OF, to what does not depend on what they were
} FlagsEffect;

#define JM_X86_LONGEST 15 // bytes of an instruction

// What the instruction at `code` does; its length in bytes to `*length` unless they are read. (Intel 64 and IA-32
// Architectures Software Developer's Manual, volume 2, appendix A, and for each instruction "Flags Affected". Those
// that are undefined there VEX sets.)
FlagsEffect jm_x86_flags_effect(const UChar *code, UInt *length);

// Where a direct jump or call leads that is taken in any case; False if it is another instruction.
Bool jm_x86_leads_on(const UChar *code, UInt *length, Addr *to);

#endif
