// SPDX-License-Identifier: GPL-2.0-or-later
//
// What of the program's files only the recorder looks at. An unwind table is mapped with its library; the program reads
// it when it throws an exception, and the recorder reads nearly all of it: 20 MB for `import torch`. These pages would
// count as the library's, and as the process's, though the program alone has none of them. So they are let go of now
// and then. They are a file's, unchanged, and come back when somebody looks at them.

#ifndef JM_LOOKED_AT_H
#define JM_LOOKED_AT_H

#include "base/compat.h"

// The recorder has read from `start` to before `end`, in the mapping of a file that holds `start`.
void jm_looked_at(Addr start, Addr end);

// Lets go of what was looked at, but for pages that are not as the file has them.
void jm_looked_at_let_go(void);

#endif
