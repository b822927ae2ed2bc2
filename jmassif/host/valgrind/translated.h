// SPDX-License-Identifier: GPL-2.0-or-later
//
// Addresses of the program that have been translated. Before each translation the core searches one in all of its
// sectors, and a fuller sector takes longer: 59 probes per search in `import torch`, 5 % of the time when translations
// are kept. Most searches fail, and these are skipped.

#ifndef JM_TRANSLATED_H
#define JM_TRANSLATED_H

#include "host/valgrind/compat.h"

// Call with the arguments of each translation, before it.
void jm_translated(const VexTranslateArgs *args);

#endif
