// SPDX-License-Identifier: GPL-2.0-or-later
//
// Look-up of code that cannot change, in the core's segments: such code can be translated once for several runs. See
// mapped_code.h.

#include "host/valgrind/mapped_code.h"
#include "base/kernel.h"

const NSegment *jm_mapped_code(Addr address)
{
    const NSegment *segment = VG_(am_find_nsegment)(address);
    return segment && segment->kind == SkFileC && segment->hasR && segment->hasX && !segment->hasW ? segment : NULL;
}

// Probe only the last page: pages of a mapping are missing only beyond the file's end.
Bool jm_mapped_code_can_read(const NSegment *mapping, Addr address, SizeT n_bytes)
{
    if (n_bytes == 0 || address < mapping->start || address > mapping->end || n_bytes - 1 > mapping->end - address)
        return False;
    const Addr last_page = VG_PGROUNDDN(address + n_bytes - 1);
    return last_page <= VG_PGROUNDDN(address) || jm_kernel_can_read(last_page);
}
