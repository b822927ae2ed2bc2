// SPDX-License-Identifier: GPL-2.0-or-later
//
// Filter of the symbols that the core matches with functions to replace or wrap.

#ifndef JM_MATCHING_H
#define JM_MATCHING_H

#include "host/valgrind/compat.h"

void jm_matching_stats(void);

#endif
