// SPDX-License-Identifier: GPL-2.0-or-later
//
// What an address looks like that may be code: in a file that has unwind tables or made by the program itself, behind a
// call, or where a signal's handler returns to. Every read is checked. What the program writes there is seen at once:
// only the mappings are remembered, until they change.

#ifndef JM_CODE_H
#define JM_CODE_H

#include "base/compat.h"

// The mapping of each mebibyte that was looked at, in a table that mebibytes share, as in client_memory.h; those that
// hold no code too.
#define JM_N_CODE_SEGMENTS 256
typedef struct {
    Addr start, end;
    Bool is_code; // the core's own counts: what signal handlers return to may be there
    Bool is_file;
    Bool can_be_read;
} CodeSegment;
extern CodeSegment jm_code_segments[JM_N_CODE_SEGMENTS];

const CodeSegment *jm_find_code_segment(Addr address); // asks the core

// The mapping that holds the address, which may be one without code; never NULL, but empty if there is none.
static inline const CodeSegment *jm_code_segment(Addr address)
{
    const CodeSegment *known = &jm_code_segments[address >> 20 & (JM_N_CODE_SEGMENTS - 1)];
    if (LIKELY(known->start <= address && address < known->end))
        return known;
    return jm_find_code_segment(address);
}

static inline Bool jm_is_code(Addr address)
{
    return jm_code_segment(address)->is_code;
}

// Else no object's table covers it: the program has made it.
static inline Bool jm_is_in_file(Addr address)
{
    return jm_code_segment(address)->is_file;
}

// Whether what lies before the address is a call.
Bool jm_is_return_address(Addr address);

// Whether it is code that calls sigreturn at once. The kernel's is not mapped under Valgrind, and others may come
// without a table.
Bool jm_is_trampoline(Addr address);

// Mappings have changed.
void jm_code_forget(void);

#endif
