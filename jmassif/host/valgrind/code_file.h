// SPDX-License-Identifier: GPL-2.0-or-later
//
// The file of translations: one per key (code_cache.h), in the cache's directory.

#pragma once

#include "host/valgrind/compat.h"

// A translation. It is followed by its host code, and by a copy of the program's bytes that it depends on.
typedef struct {
    ULong checksum; // of all that follows
    Addr address;   // of the program's code
    UInt n_host;
    UShort n_guest;    // bytes of the program, from there on, that were translated
    UShort n_compared; // n_guest, and the bytes behind that VEX may have read
    VexTranslateResult result;
} CodeRecord;

// Return the mapping of code that cannot change, from a file and not writable, which contains the address; else NULL.
// Valid until the core allocates memory, which moves its segments.
const NSegment *jm_mapped_code(Addr address);

// Open the file, or create it; `limit` is its size in bytes. False if nothing can be kept.
Bool jm_code_file_open(const ULong key[2], ULong limit);

// Find the translation of the code at `address`, in `mapping`, made from exactly the bytes that are there now. It and
// its host code are valid until the next call; NULL if there is none.
const CodeRecord *jm_code_file_find(Addr address, const NSegment *mapping);

// Keep a translation. It can be found after the next write to the file.
void jm_code_file_add(const VexTranslateArgs *args, const VexTranslateResult *result, const NSegment *mapping);

// Write the translations kept since the last write.
void jm_code_file_flush(void);

// Write the remaining translations, close the file and keep the directory within its limit.
void jm_code_file_close(void);

// Call in the child of a fork: discard unwritten translations, which the parent writes.
void jm_code_file_after_fork_in_child(void);

void jm_code_file_stats(void);
