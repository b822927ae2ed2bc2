// SPDX-License-Identifier: GPL-2.0-or-later
//
// Code of the program that cannot change: mapped from a file, and not writable.

#ifndef JM_MAPPED_CODE_H
#define JM_MAPPED_CODE_H

#include "host/valgrind/compat.h"

// Return the mapping of such code that contains the address, else NULL. Valid until the core allocates memory, which
// moves its segments.
const NSegment *jm_mapped_code(Addr address);

// Return whether `n_bytes` from a readable address on are in the mapping and can be read. A mapping may be longer than
// its file, and a read beyond the file's last page raises a signal.
Bool jm_mapped_code_can_read(const NSegment *mapping, Addr address, SizeT n_bytes);

#endif
