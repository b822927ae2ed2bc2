// SPDX-License-Identifier: GPL-2.0-or-later
//
// One bit per hash of an address, never cleared: if it is not set, the core has no translation; if it is set, the core
// searches as usual. 360,000 superblocks set a sixth of the bits. The linker leads the core's searches here (--wrap).

#include "host/valgrind/translated.h"
#include "base/table.h"

#if defined(KNOWS_WHAT_IS_TRANSLATED)

#define N_BITS (1u << 21)

static ULong bits[N_BITS / 64];

static inline UInt bit_of(Addr address)
{
    return jm_hash(address) >> 32 & (N_BITS - 1);
}

// Use the address that the program jumps to; the translated code can be at another.
void jm_translated(const VexTranslateArgs *args)
{
    const UInt bit = bit_of(((const VgCallbackClosure *)args->callback_opaque)->nraddr);
    bits[bit / 64] |= 1ULL << bit % 64;
}

Bool __real_vgPlain_search_transtab(Addr *host_code, void *sector, void *entry, Addr address, Bool update_cache);
Bool __wrap_vgPlain_search_transtab(Addr *host_code, void *sector, void *entry, Addr address, Bool update_cache);

Bool __wrap_vgPlain_search_transtab(Addr *host_code, void *sector, void *entry, Addr address, Bool update_cache)
{
    const UInt bit = bit_of(address);
    if (!(bits[bit / 64] >> bit % 64 & 1))
        return False;
    return __real_vgPlain_search_transtab(host_code, sector, entry, address, update_cache);
}

#else

void jm_translated(const VexTranslateArgs *args) {}

#endif
