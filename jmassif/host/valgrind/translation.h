// SPDX-License-Identifier: GPL-2.0-or-later
//
// Cost of translating the program's code, in time and memory. Most of a script's start is translation: `import torch`
// has 330,000 superblocks, and runs most of them a few times.

#ifndef JM_TRANSLATION_H
#define JM_TRANSLATION_H

#include "host/valgrind/compat.h"

// Set defaults before the options are parsed: the user's --vex-guest-max-insns, --vex-guest-chase,
// --num-transtab-sectors and --avg-transtab-entry-size win.
void jm_translation_init(void);

// Keep the least translated code that the program can do with. Call after the options are parsed.
void jm_translation_keep_little(void);

// Add code to a superblock that counts its guest instructions in jm_clock_instructions, for --time-unit=i.
IRSB *jm_count_instructions(IRSB *in);

#endif
