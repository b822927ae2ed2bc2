// SPDX-License-Identifier: GPL-2.0-or-later
//
// Release of file pages that only the recorder touched. An unwind table is mapped with its library; the program reads
// it when it throws an exception, but the recorder reads nearly all of it: 20 MB for `import torch`. These pages would
// count as resident memory of the library and of the process. They are unmodified file pages and come back at the next
// access.

#pragma once

#include "host/types.h"

// Note that the recorder has read [start, end), in the file mapping that holds `start`.
void jm_looked_at(Addr start, Addr end);

// Release the pages noted so far, except modified ones.
void jm_looked_at_let_go(Bool in_full);
