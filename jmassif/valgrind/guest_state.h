// SPDX-License-Identifier: GPL-2.0-or-later
//
// Where the program's registers lie while the program is translated (x86-64).

#ifndef JM_GUEST_STATE_H
#define JM_GUEST_STATE_H

#include "base/compat.h"

void jm_guest_stats(void);

#endif
