// SPDX-License-Identifier: GPL-2.0-or-later
//
// The key of translations, which covers everything but the code that shapes them: the tool with Valgrind's core and VEX
// in it, the processor's capabilities, the options. A translation is valid under its own key only.

#ifndef JM_CODE_KEY_H
#define JM_CODE_KEY_H

#include "host/valgrind/compat.h"

typedef struct {
    ULong words[2];
    HChar hex[2 * 16 + 1];
} CodeKey;

// Compute the key; False if the tool's file cannot be read.
Bool jm_code_key(CodeKey *key, const VexTranslateArgs *args);

#endif
