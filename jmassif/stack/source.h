// SPDX-License-Identifier: GPL-2.0-or-later
//
// What the text of the program's own Python files was. A reader shows a line's text only where the file that it finds
// has the hash that the trace tells: so it shows the text that ran, and no file that a trace merely names.

#ifndef JM_SOURCE_H
#define JM_SOURCE_H

#include "base/compat.h"

// Tells the hash of the file once. `string` is its path's id in the trace. A file that cannot be read has none.
void jm_source_seen(const HChar *path, UInt string);

void jm_source_stats(void); // tells what it keeps (stats.h)

#endif
