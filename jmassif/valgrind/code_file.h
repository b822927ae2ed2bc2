// SPDX-License-Identifier: GPL-2.0-or-later
//
// The file in which translations are kept: one for each key (code_key.h), in the cache's directory.

#ifndef JM_CODE_FILE_H
#define JM_CODE_FILE_H

#include "valgrind/code_key.h"
#include "valgrind/code_record.h"

// Opens the file, or makes it. False if nothing can be kept.
Bool jm_code_file_open(const CodeKey *key, ULong limit);

// The translation of the code at `address`, which lies in the mapping: its host code, to be copied before the next
// call; NULL if none is kept that was made of the very bytes that are there now.
const UChar *jm_code_file_find(Addr address, const NSegment *mapping, CodeRecord *record);

// Keeps one. It can be found from the next time on that what is kept is written.
void jm_code_file_add(const CodeRecord *record, const UChar *host);

// Writes what is to be kept.
void jm_code_file_flush(void);

// The same, and keeps the file within its limit.
void jm_code_file_close(void);

// The parent writes what it had to keep.
void jm_code_file_after_fork_in_child(void);

void jm_code_file_stats(void);

#endif
