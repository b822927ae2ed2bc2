// SPDX-License-Identifier: GPL-2.0-or-later
//
// Reading the profiled program's memory. Every address is checked first: the tool must never crash because a program
// passed a bad pointer or a library keeps its structures differently than we think.

#ifndef JM_CLIENT_MEMORY_H
#define JM_CLIENT_MEMORY_H

#include "base/compat.h"

// Walking an interpreter's frames takes hundreds of reads in the same segments at each allocation: the segment of each
// mebibyte that was looked at is remembered, in a table that mebibytes share, until mappings change.
#define JM_N_READABLE 256
typedef struct {
    Addr start, end;
} ReadableSegment;
extern ReadableSegment jm_readable[JM_N_READABLE];
extern ULong jm_n_forgotten; // times all was forgotten; while it is the same, what could be read still can

Bool jm_is_newly_readable(Addr address, SizeT bytes); // asks the core
void jm_forget_readable(void);

// Whether the program could read these bytes.
static inline Bool jm_is_readable(Addr address, SizeT bytes)
{
    const ReadableSegment *known = &jm_readable[address >> 20 & (JM_N_READABLE - 1)];
    if (LIKELY(known->start <= address && address < known->end && bytes <= known->end - address))
        return True;
    return jm_is_newly_readable(address, bytes);
}

// Where the mapping that holds the address ends; 0 if the program could not read it.
static inline Addr jm_readable_end(Addr address)
{
    const ReadableSegment *known = &jm_readable[address >> 20 & (JM_N_READABLE - 1)];
    return jm_is_readable(address, 1) ? known->end : 0;
}

// False, and `*value` 0, if the address cannot be read.
static inline Bool jm_read_word(Addr address, UWord *value)
{
    Bool is_readable = jm_is_readable(address, sizeof *value);
    *value = is_readable ? *(const UWord *)address : 0;
    return is_readable;
}

static inline Bool jm_read_uint(Addr address, UInt *value)
{
    Bool is_readable = jm_is_readable(address, sizeof *value);
    *value = is_readable ? *(const UInt *)address : 0;
    return is_readable;
}

// No program has as many bytes, nor an address beyond: 2^47 on x86-64, 2^48 on arm64.
#define JM_ADDRESS_SPACE ((UWord)1 << 48)

Bool jm_read_bytes(Addr address, void *to, SizeT bytes);

// A string of at most `size - 1` bytes; false if it cannot be read.
Bool jm_read_string(Addr address, HChar *to, SizeT size);

#endif
