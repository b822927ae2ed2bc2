// SPDX-License-Identifier: GPL-2.0-or-later
//
// Slow paths of the checked reads. The inline checks of client_memory.h hit a cache of readable segments; a miss asks
// the core here and refills the cache.

#include "base/client_memory.h"
#include "base/libc.h"
#include "host/host.h"

ReadableSegment jm_readable[JM_N_READABLE];
ULong jm_n_forgotten;

void jm_forget_readable(void)
{
    jm_n_forgotten++;
    memset(jm_readable, 0, sizeof jm_readable);
}

Bool jm_is_newly_readable(Addr address, SizeT bytes)
{
    if (address + bytes < address || !address || !host_is_readable(address, bytes))
        return False;
    Mapping mapping;
    if (host_mapping_at(address, &mapping))
        jm_readable[address >> 20 & (JM_N_READABLE - 1)] = (ReadableSegment){mapping.start, mapping.end};
    return True;
}

Bool jm_read_bytes(Addr address, void *to, SizeT bytes)
{
    if (!jm_is_readable(address, bytes))
        return False;
    memcpy(to, (void *)address, bytes);
    return True;
}

Bool jm_read_string(Addr address, HChar *to, SizeT size)
{
    SizeT n = 0;
    to[0] = 0;
    while (n + 1 < size) {
        // Readability is a property of whole pages: check once per page.
        Addr at = address + n;
        SizeT piece = HOST_PAGE_DOWN(at) + HOST_PAGE_BYTES - at;
        if (!at || !host_is_readable(at, 1))
            return False;
        for (SizeT i = 0; i < piece && n + 1 < size; i++, n++) {
            to[n] = ((const HChar *)at)[i];
            if (!to[n])
                return True;
        }
    }
    to[n] = 0;
    return True;
}
