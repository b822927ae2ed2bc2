// SPDX-License-Identifier: GPL-2.0-or-later
//
// What the core looks for in object files, to replace or wrap it.

#ifndef JM_MATCHING_H
#define JM_MATCHING_H

#include "base/compat.h"

void jm_matching_stats(void);

#endif
