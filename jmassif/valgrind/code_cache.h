// SPDX-License-Identifier: GPL-2.0-or-later
//
// Translations that are kept between runs. Half of what the start of a script costs is translating the code of
// libraries that were translated in the run before: the same bytes at the same addresses.

#ifndef JM_CODE_CACHE_H
#define JM_CODE_CACHE_H

#include "base/compat.h"

// After the options.
void jm_code_cache_init(void);

// To be called with every superblock that the tool is given.
void jm_code_cache_instrumenting(const IRSB *block);

void jm_code_cache_before_exec(void);
void jm_code_cache_after_fork_in_child(void);
void jm_code_cache_stats(void);
void jm_code_cache_end(void);

#endif
