// SPDX-License-Identifier: GPL-2.0-or-later
//
// The file of translations: one per key (code_key.h), in the cache's directory.

#ifndef JM_CODE_FILE_H
#define JM_CODE_FILE_H

#include "host/valgrind/code_key.h"
#include "host/valgrind/code_record.h"

// Open the file, or create it; `limit` is its size in bytes. False if nothing can be kept.
Bool jm_code_file_open(const CodeKey *key, ULong limit);

// Find the translation of the code at `address`, in `mapping`. Return its host code, to be copied before the next call;
// NULL unless one was made from exactly the bytes that are there now.
const UChar *jm_code_file_find(Addr address, const NSegment *mapping, CodeRecord *record);

// Keep a translation. It can be found after the next write to the file.
void jm_code_file_add(const CodeRecord *record, const UChar *host);

// Write the translations kept since the last write.
void jm_code_file_flush(void);

// Write the remaining translations, close the file and keep it within its limit.
void jm_code_file_close(void);

// Call in the child of a fork: discard unwritten translations, which the parent writes.
void jm_code_file_after_fork_in_child(void);

void jm_code_file_stats(void);

#endif
