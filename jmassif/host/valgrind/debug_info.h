// SPDX-License-Identifier: GPL-2.0-or-later
//
// Control of the debug information that the core reads from object files.

#ifndef JM_DEBUG_INFO_H
#define JM_DEBUG_INFO_H

#include "host/valgrind/compat.h"

void jm_debug_info_init(void);

// Skip inlined calls, unless the user has asked for them.
void jm_debug_info_keep_little(void);

// Read an object file's symbols now if they are needed before the first look-up of an address.
void jm_debug_info_read_early(const DebugInfo *info);

// Return how often the core has read an object file's debug information; while unchanged, all symbols are the same.
UInt jm_debug_info_n_read(void);

#endif
