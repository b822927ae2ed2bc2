// SPDX-License-Identifier: GPL-2.0-or-later
//
// What the core reads of the debug information of object files.

#ifndef JM_DEBUG_INFO_H
#define JM_DEBUG_INFO_H

#include "base/compat.h"

void jm_debug_info_init(void);

// No inlined calls, unless the user has asked for them.
void jm_debug_info_keep_little(void);

// Reads symbols that are wanted before somebody asks for an address.
void jm_debug_info_read_early(const DebugInfo *info);

// How often the core has read some object file's debug information: from one time to the next its symbols are the same.
UInt jm_debug_info_n_read(void);

#endif
