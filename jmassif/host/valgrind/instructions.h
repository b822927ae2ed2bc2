// SPDX-License-Identifier: GPL-2.0-or-later

#ifndef JM_INSTRUCTIONS_H
#define JM_INSTRUCTIONS_H

#include "host/valgrind/compat.h"

// Add code to a superblock that counts its guest instructions in jm_clock_instructions.
IRSB *jm_count_instructions(IRSB *in);

#endif
