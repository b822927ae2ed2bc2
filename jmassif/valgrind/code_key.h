// SPDX-License-Identifier: GPL-2.0-or-later
//
// What shapes a translation besides the code itself: the tool with Valgrind's core and VEX in it, what the processor
// can do, the options. Translations that were made under one key mean nothing under another.

#ifndef JM_CODE_KEY_H
#define JM_CODE_KEY_H

#include "base/compat.h"

typedef struct {
    ULong words[2];
    HChar hex[2 * 16 + 1];
} CodeKey;

// False if the tool cannot be read.
Bool jm_code_key(CodeKey *key, const VexTranslateArgs *args);

#endif
