// SPDX-License-Identifier: GPL-2.0-or-later
//
// Which addresses of the program have been translated. Before each translation the core looks for one in all of its
// sectors, the fuller the longer: 59 probes for each search in `import torch`, 5 % of the time when translations are
// kept. Most of that finds nothing, and is left out here.

#ifndef JM_TRANSLATED_H
#define JM_TRANSLATED_H

#include "base/compat.h"

// To be called with what VEX is about to translate.
void jm_translated(const VexTranslateArgs *args);

#endif
