// SPDX-License-Identifier: GPL-2.0-or-later
//
// The directory of the files kept between runs. Their content is executed, so directory and files must belong to the
// user and be writable by the user alone; otherwise they are not used, and one line says why.

#pragma once

#include "host/valgrind/compat.h"

#define JM_CACHE_SUFFIX ".code" // of the files

// Return a descriptor of --code-cache's directory, created if necessary; -1 if nothing can be kept. It stays open, so
// it is the same directory when the program has changed its root or its user.
Int jm_cache_directory(void);

// Open a file or a directory by `flags` of open(2); a created file is accessible to the user alone. Return a descriptor
// out of the program's reach, which the caller closes; negative if it does not exist, or is not the user's own.
Int jm_cache_open(Int directory, const HChar *path, Int flags);

Bool jm_cache_remove(Int directory, const HChar *name);

// Remove files, least recently used first, until their sum is at most `limit` bytes. The file `kept` stays.
void jm_cache_directory_trim(Int directory, const HChar *kept, ULong limit);
