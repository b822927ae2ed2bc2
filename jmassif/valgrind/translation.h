// SPDX-License-Identifier: GPL-2.0-or-later
//
// What translating the program's code costs, in time and memory. Most of a script's start is translation: `import
// torch` has 330,000 superblocks, and runs most of them a few times.

#ifndef JM_TRANSLATION_H
#define JM_TRANSLATION_H

#include "base/compat.h"

// Sets defaults before the options are read: the user's --vex-guest-max-insns, --vex-guest-chase,
// --num-transtab-sectors and --avg-transtab-entry-size win.
void jm_translation_init(void);

// After the options: keeps the least translated code that the program can do with.
void jm_translation_keep_little(void);

// To be called with every superblock that the tool was given, and what it makes of it.
void jm_translation_instrumented(const IRSB *in, const IRSB *out);

#endif
