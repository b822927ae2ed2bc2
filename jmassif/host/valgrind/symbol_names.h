// SPDX-License-Identifier: GPL-2.0-or-later
//
// Symbol names that stay in their files, mapped, with --low-footprint.

#ifndef JM_SYMBOL_NAMES_H
#define JM_SYMBOL_NAMES_H

#include "host/valgrind/compat.h"

// Release the pages of names: the kernel reads them from the files at the next access.
void jm_symbol_names_let_go(void);

#endif
