// SPDX-License-Identifier: GPL-2.0-or-later
//
// What the core reads of the debug information of object files.

#ifndef JM_DEBUG_INFO_H
#define JM_DEBUG_INFO_H

#include "base/compat.h"

void jm_debug_info_init(void);

// No inlined calls, unless the user has asked for them.
void jm_debug_info_keep_little(void);

#endif
