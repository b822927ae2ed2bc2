// SPDX-License-Identifier: GPL-2.0-or-later
//
// The program's code where it cannot change: mapped from a file, and not to be written to.

#ifndef JM_MAPPED_CODE_H
#define JM_MAPPED_CODE_H

#include "base/compat.h"

// The mapping of such code in which the address lies; NULL if none. Good until the core needs memory, and moves it.
const NSegment *jm_mapped_code(Addr address);

// True if `n_bytes` from a readable address on lie in the mapping and can be read. A mapping may be longer than its
// file, and a read where the file has no more pages ends in a signal.
Bool jm_mapped_code_can_read(const NSegment *mapping, Addr address, SizeT n_bytes);

#endif
