// SPDX-License-Identifier: GPL-2.0-or-later
//
// Checked reads of the profiled program's memory, and the state of its pages. A bad pointer of the program, or a
// library with an unknown layout, must never crash the tool.

#pragma once

#include "host/types.h"

// Cache of readable segments, direct-mapped by the mebibyte of an address. Walking an interpreter's frames takes
// hundreds of reads in the same segments per allocation. Entries are valid until mappings change.
#define JM_N_READABLE 256
typedef struct {
    Addr start, end;
} ReadableSegment;
extern ReadableSegment jm_readable[JM_N_READABLE];
extern ULong jm_n_forgotten; // generation of the cache: while unchanged, readable memory stays readable

Bool jm_is_newly_readable(Addr address, SizeT bytes); // after a miss: asks the core
void jm_forget_readable(void);

// Return whether the program can read these bytes.
static inline Bool jm_is_readable(Addr address, SizeT bytes)
{
    const ReadableSegment *known = &jm_readable[address >> 20 & (JM_N_READABLE - 1)];
    if (LIKELY(known->start <= address && address < known->end && bytes <= known->end - address))
        return True;
    return jm_is_newly_readable(address, bytes);
}

// Return the end (exclusive) of the mapping that holds the address; 0 if the program cannot read it.
static inline Addr jm_readable_end(Addr address)
{
    const ReadableSegment *known = &jm_readable[address >> 20 & (JM_N_READABLE - 1)];
    return jm_is_readable(address, 1) ? known->end : 0;
}

// While it is set, what is read here is read by the kernel, a page at a time, and kept: another thread may unmap the
// objects that are being followed. Memory must not be read otherwise meanwhile.
extern Bool jm_reads_copies;
Bool jm_read_copies(Bool is_wanted);                      // returns what was wanted before
Bool jm_read_copied(Addr address, void *to, SizeT bytes); // nothing is written to `to` on failure

// Read a word; if it is unreadable, set `*value` to 0 and return False.
static inline Bool jm_read_word(Addr address, UWord *value)
{
    if (UNLIKELY(jm_reads_copies)) {
        *value = 0;
        return jm_read_copied(address, value, sizeof *value);
    }
    Bool is_readable = jm_is_readable(address, sizeof *value);
    *value = is_readable ? *(const UWord *)address : 0;
    return is_readable;
}

static inline Bool jm_read_uint(Addr address, UInt *value)
{
    if (UNLIKELY(jm_reads_copies)) {
        *value = 0;
        return jm_read_copied(address, value, sizeof *value);
    }
    Bool is_readable = jm_is_readable(address, sizeof *value);
    *value = is_readable ? *(const UInt *)address : 0;
    return is_readable;
}

static inline UWord jm_word_at(Addr address)
{
    UWord value;
    jm_read_word(address, &value);
    return value;
}

// Upper bound of addresses and sizes in any program: 2^47 on x86-64, 2^48 on arm64.
#define JM_ADDRESS_SPACE ((UWord)1 << 48)

Bool jm_read_bytes(Addr address, void *to, SizeT bytes);

// Copy a string, cut to `size - 1` bytes. If it is unreadable, return False; `to` may then lack its NUL.
Bool jm_read_string(Addr address, HChar *to, SizeT size);

// State of a page in /proc/self/pagemap. The zero page, mapped where memory is read before it is written, is PRESENT as
// well, though Rss does not count it. CERTAIN excludes it, and other anonymous pages shared with a child or parent. A
// MODIFIED page of a private file mapping differs from the file.
typedef enum { PAGE_SWAPPED, PAGE_PRESENT, PAGE_CERTAIN, PAGE_MODIFIED } PageSort;

Int jm_pagemap_open(void); // returns a descriptor for jm_close; negative on failure

// Bytes of a range in pages of that sort. The range need not be page aligned. False if pagemap cannot be read.
Bool jm_pagemap_measure(Int pagemap, Addr start, Addr end, PageSort sort, ULong *bytes);
