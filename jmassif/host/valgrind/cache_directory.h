// SPDX-License-Identifier: GPL-2.0-or-later
//
// The directory of the files kept between runs. Their content is executed, so directory and files must belong to the
// user and be writable by the user alone; otherwise they are not used, and one line says why.

#ifndef JM_CACHE_DIRECTORY_H
#define JM_CACHE_DIRECTORY_H

#include "host/valgrind/compat.h"

// Return a descriptor of --code-cache's directory, created if necessary; -1 if nothing can be kept. It stays open, so
// it is the same directory when the program has changed its root or its user.
Int jm_cache_directory(void);

// Open a file of the directory with `flags` of open(2); a created file is accessible to the user alone. Return a
// descriptor out of the program's reach, which the caller closes; -1 if the file does not exist or is not the user's
// own.
Int jm_cache_directory_file(Int directory, const HChar *name, Int flags);

// Open the same file again, with a position and flags of its own; -1 on failure. The caller closes it.
Int jm_cache_reopen(Int file, Int flags);

// Remove files with the suffix, least recently used first, until their sum is at most `limit` bytes. The file `kept`
// stays.
void jm_cache_directory_trim(Int directory, const HChar *suffix, const HChar *kept, ULong limit);

// Set the time of the file's last use to now.
void jm_cache_note_use(Int file);

void jm_cache_remove(Int directory, const HChar *name);

// Read `n` bytes, fewer at the file's end; a negative result is -errno.
Long jm_cache_read(Int file, void *bytes, SizeT n, ULong offset);

// Append both pieces to the file in one call, and set `*at` to their offset. False if they could not be written whole.
typedef struct {
    const void *bytes;
    SizeT n;
} CachePiece;
Bool jm_cache_append(Int file, const CachePiece pieces[2], ULong *at);

#endif
