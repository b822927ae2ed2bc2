// SPDX-License-Identifier: GPL-2.0-or-later
//
// Control of the debug information that the core reads from object files.

#pragma once

#include "host/valgrind/compat.h"

void jm_debug_info_init(void);

// Skip inlined calls, unless the user has asked for them.
void jm_debug_info_keep_little(void);

// Read the dynamic loader's symbols. Call with the program's first instruction, which is the loader's.
void jm_debug_info_read_loader(Addr first_instruction);

// Call when the core begins to read an object file, and after the program has mapped one: the inlined calls of the C
// library are skipped in between.
void jm_debug_info_reading(const DebugInfo *object);
void jm_debug_info_after_map(void);
