// SPDX-License-Identifier: GPL-2.0-or-later
//
// Slabs are 64 KiB and aligned to it, so that a block's address gives its slab. They are cut from regions that the core
// maps as the program's heap. A slab with no live blocks can serve another size class.

#include "heap/slab.h"
#include "base/kernel.h"
#include "base/list.h"
#include "base/table.h"
#include "host/host.h"

#define SLAB_BITS    16
#define SLAB_BYTES   (1u << SLAB_BITS)
#define REGION_BYTES (16 * SLAB_BYTES)

#define GRAIN 16u // class sizes are multiples of it

#define NO_SLOT    0xffffu
#define FREE_BYTES 0xffffu // marks a free slot in place of a size

typedef struct Slab Slab;
struct Slab {
    Addr start;
    UInt *tags;      // a free slot holds the next free slot
    UShort *bytes;   // requested size
    UInt reciprocal; // 2^20 / grains, rounded up
    UShort grains;   // block size in GRAIN units
    UShort n_slots;
    UShort n_fresh; // slots from here on are unused so far
    UShort n_live;
    UShort first_free;
    Slab *previous, *next; // in its class's list while it has a free slot; empty slabs use `next` only
};

// ---- size classes --------------------------------------------------------------------------------------------

// Steps of 16 bytes up to 512, then four per doubling: at most a fifth of a block is rounding.
#define N_FINE    32
#define N_CLASSES (N_FINE + 3 * 4)

static UShort grains_of_class[N_CLASSES];
static UChar class_of_grains[JM_SLAB_MAX_BYTES / GRAIN + 1];

void jm_slab_init(void)
{
    UInt n = 0;
    for (UInt grains = 1; grains <= N_FINE; grains++)
        grains_of_class[n++] = grains;
    for (UInt base = N_FINE; base < JM_SLAB_MAX_BYTES / GRAIN; base *= 2)
        for (UInt quarter = 1; quarter <= 4; quarter++)
            grains_of_class[n++] = base + base * quarter / 4;
    jm_assert(n == N_CLASSES && grains_of_class[n - 1] == JM_SLAB_MAX_BYTES / GRAIN);
    UInt class = 0;
    for (UInt grains = 0; grains <= JM_SLAB_MAX_BYTES / GRAIN; grains++) {
        class += grains > grains_of_class[class];
        class_of_grains[grains] = class;
    }
}

// ---- slabs by address ----------------------------------------------------------------------------------------

static Slab **by_address; // open addressing; NULL: free entry. Slabs are never unmapped.
static UInt address_bits;
static UInt n_slabs;

static inline UInt place_of(Addr start)
{
    return jm_place(start >> SLAB_BITS, address_bits);
}

static void put(Slab *s)
{
    UInt at = place_of(s->start);
    while (by_address[at])
        at = (at + 1) & ((1u << address_bits) - 1);
    by_address[at] = s;
}

static void index_slab(Slab *s)
{
    if (4 * ++n_slabs > 1u << address_bits) {
        Slab **old = by_address;
        UInt n_old = old ? 1u << address_bits : 0;
        address_bits = old ? address_bits + 1 : 8;
        by_address = host_alloc_zeroed("jm.slab", 1u << address_bits, sizeof *by_address);
        for (UInt i = 0; i < n_old; i++)
            if (old[i])
                put(old[i]);
        host_free(old);
    }
    put(s);
}

static inline Slab *slab_of(Addr address)
{
    if (!by_address)
        return NULL;
    Addr start = address & ~(Addr)(SLAB_BYTES - 1);
    for (UInt at = place_of(start);; at = (at + 1) & ((1u << address_bits) - 1)) {
        Slab *s = by_address[at];
        if (!s || s->start == start)
            return s;
    }
}

// Returns the slab and the slot of the live block that begins at the address; NULL if there is none.
static inline Slab *find_slot(Addr address, UInt *slot)
{
    Slab *s = slab_of(address);
    if (!s)
        return NULL;
    UInt offset = address - s->start;
    // Exact, since the offset in grains and the divisor are small: 4095 * 256 < 2 to the 20.
    *slot = (ULong)(offset / GRAIN) * s->reciprocal >> 20;
    return *slot * s->grains * GRAIN == offset && *slot < s->n_fresh && s->bytes[*slot] != FREE_BYTES ? s : NULL;
}

// ---- slabs with room -----------------------------------------------------------------------------------------

static Slab *with_room[N_CLASSES];
static Slab *empty;
static UInt n_empty;

// This many empty slabs (4 MiB) keep their pages for reuse. The pages of others are released, since the program may
// need the memory elsewhere.
#define MAX_EMPTY_WITH_PAGES 64

static Bool map_region(void)
{
    Addr mapped = host_map_heap(REGION_BYTES);
    if (!mapped)
        return False;
    Addr start = JM_ROUND_UP(mapped, SLAB_BYTES);
    UInt n = (mapped + REGION_BYTES - start) / SLAB_BYTES;
    Slab *slabs = host_alloc_zeroed("jm.slab", n, sizeof *slabs);
    // Link backwards, so that the lowest slab is used first.
    for (UInt i = n; i-- > 0;) {
        slabs[i].start = start + (Addr)i * SLAB_BYTES;
        slabs[i].next = empty;
        empty = &slabs[i];
        n_empty++;
        index_slab(&slabs[i]);
    }
    return True;
}

// Returns NULL when out of memory.
static Slab *open_slab(UInt class)
{
    if (!empty && !map_region())
        return NULL;
    Slab *s = empty;
    empty = s->next;
    n_empty--;
    s->grains = grains_of_class[class];
    s->reciprocal = ((1u << 20) + s->grains - 1) / s->grains;
    s->n_slots = SLAB_BYTES / GRAIN / s->grains;
    s->n_fresh = s->n_live = 0;
    s->first_free = NO_SLOT;
    s->tags = host_alloc("jm.slab", s->n_slots * (sizeof *s->tags + sizeof *s->bytes));
    s->bytes = (UShort *)(s->tags + s->n_slots);
    JM_LIST_ADD(with_room[class], s, next, previous);
    return s;
}

static void close_slab(Slab *s, UInt class)
{
    JM_LIST_REMOVE(with_room[class], s, next, previous);
    host_free(s->tags);
    s->n_fresh = 0; // no live blocks
    s->next = empty;
    empty = s;
    if (++n_empty > MAX_EMPTY_WITH_PAGES)
        jm_kernel_let_go(s->start, SLAB_BYTES);
}

// ---- blocks --------------------------------------------------------------------------------------------------

static inline UInt class_of(SizeT bytes)
{
    return class_of_grains[(bytes + GRAIN - 1) / GRAIN];
}

void *jm_slab_alloc(SizeT bytes)
{
    if (bytes > JM_SLAB_MAX_BYTES)
        return NULL;
    UInt class = class_of(bytes);
    Slab *s = with_room[class];
    if (!s && !(s = open_slab(class)))
        return NULL;
    UInt slot = s->first_free;
    if (slot != NO_SLOT)
        s->first_free = s->tags[slot];
    else
        slot = s->n_fresh++;
    s->tags[slot] = 0;
    s->bytes[slot] = bytes;
    if (++s->n_live == s->n_slots)
        JM_LIST_REMOVE(with_room[class], s, next, previous);
    return (void *)(s->start + (Addr)slot * s->grains * GRAIN);
}

Bool jm_slab_find(Addr address, SlabBlock *block)
{
    UInt slot;
    Slab *s = find_slot(address, &slot);
    if (!s)
        return False;
    *block = (SlabBlock){&s->tags[slot], s->bytes[slot]};
    return True;
}

Bool jm_slab_saves(SizeT from, SizeT to)
{
    return to <= JM_SLAB_MAX_BYTES && (from > JM_SLAB_MAX_BYTES || class_of(to) < class_of(from));
}

Bool jm_slab_resize(Addr address, SizeT bytes)
{
    UInt slot;
    Slab *s = find_slot(address, &slot);
    if (!s || bytes > s->grains * GRAIN)
        return False;
    s->bytes[slot] = bytes;
    return True;
}

Bool jm_slab_free(Addr address)
{
    UInt slot;
    Slab *s = find_slot(address, &slot);
    if (!s)
        return False;
    UInt class = class_of_grains[s->grains];
    s->bytes[slot] = FREE_BYTES;
    s->tags[slot] = s->first_free;
    s->first_free = slot;
    if (s->n_live-- == s->n_slots)
        JM_LIST_ADD(with_room[class], s, next, previous);
    // Keep the class's last slab with room: the next block may be of its class.
    if (s->n_live == 0 && (s->previous || s->next))
        close_slab(s, class);
    return True;
}
