// SPDX-License-Identifier: GPL-2.0-or-later
//
// The directory of what is kept between runs, and its files. What lies there is executed, so it must be the user's own
// and nobody else may write to it; else it is left alone, with one line that says so.

#ifndef JM_CACHE_DIRECTORY_H
#define JM_CACHE_DIRECTORY_H

#include "base/compat.h"

// The directory that --code-cache asks for, made if need be: a descriptor, which stays open, so that it is the same one
// when the program has changed its root or its user. -1 if nothing can be kept.
Int jm_cache_directory(void);

// One of its files: a descriptor out of the program's reach, -1 if there is none or if it is not the user's own. With
// `flags` of open(2); a file that is created is the user's alone.
Int jm_cache_directory_file(Int directory, const HChar *name, Int flags);

// The same open file with a position and flags of its own; -1 if it cannot be had.
Int jm_cache_reopen(Int file, Int flags);

// Removes the files with the suffix, the longest unused first, until all together have no more than `limit` bytes.
// `kept` stays.
void jm_cache_directory_trim(Int directory, const HChar *suffix, const HChar *kept, ULong limit);

void jm_cache_remove(Int directory, const HChar *name);
Bool jm_cache_rename(Int directory, const HChar *from, const HChar *to);

// Fewer bytes than asked for at the file's end; negative: an error's number.
Long jm_cache_read(Int file, void *bytes, SizeT n, ULong offset);
Bool jm_cache_write_at(Int file, const void *bytes, SizeT n, ULong offset);

// Writes both pieces at the file's end, in one call. Where they lie then; 0 if they could not be written whole.
typedef struct {
    const void *bytes;
    SizeT n;
} CachePiece;
Bool jm_cache_append(Int file, const CachePiece pieces[2], ULong *at);

#endif
