// SPDX-License-Identifier: GPL-2.0-or-later
//
// Names of symbols that stay in their files, mapped, with --low-footprint.

#ifndef JM_SYMBOL_NAMES_H
#define JM_SYMBOL_NAMES_H

#include "base/compat.h"

// What was looked at of them need not stay in memory: the kernel has it from the files when it is looked at again.
void jm_symbol_names_let_go(void);

#endif
