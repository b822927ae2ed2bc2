// SPDX-License-Identifier: GPL-2.0-or-later
//
// Finds a live block by its address: small blocks in their slabs, the others in eight bytes each, by windows of
// addresses. An allocator hands out neighbours one after the other, so the next look-up is mostly in the same window,
// or near the last one: its data are still in the processor's cache.
//
// The table of windows uses linear probing with backward-shift deletion: without tombstones, long runs of malloc and
// free do not slow it down.

#include "heap/blocks.h"
#include "base/map.h"
#include "base/table.h"
#include "heap/slab.h"
#include "host/host.h"

#define WINDOW_BITS 10
#define LONG_BYTES  (1u << WINDOW_BITS) // of a block that ends in another window
#define PLACE_BYTES 8                   // no allocator aligns its blocks to less
#define MIN_WINDOWS 1024
#define STEP        4 // blocks by which a window's room grows

#define MAX_BYTES   ((ULong)1 << 30)
#define MAX_ACCOUNT ((ULong)1 << 25)

typedef struct {
    ULong place : WINDOW_BITS - 3; // in the window
    ULong bytes : 30;
    ULong account : 25;
    ULong has_record : 1;
    ULong is_custom : 1;
} Packed;

typedef struct {
    ULong number : 48;
    ULong n : 15;       // blocks that begin in it; 0: free
    ULong has_long : 1; // one of them is, or was, long
    union {
        Packed only;     // if n is 1
        Packed *several; // in no order, the newest last
    };
} Window;

_Static_assert(sizeof(Packed) == 8 && sizeof(Window) == 16, "the bits of a block and of a window");

// A block that does not fit: its size is huge, or its allocator of its own gave it an odd address.
typedef struct {
    MapNode node;
    Block block;
} Odd;

static Window *windows;
static UInt mask; // capacity - 1
static UInt used;
static Map odd = JM_MAP("jm.blocks");
static ULong n_custom;

// ---- windows -------------------------------------------------------------------------------------------------

static inline UInt home_of(ULong number)
{
    return jm_hash(number) & mask;
}

// The window, or the free slot where it belongs. The table is never full.
static Window *window_of(ULong number)
{
    UInt slot = home_of(number);
    while (windows[slot].n && windows[slot].number != number)
        slot = (slot + 1) & mask;
    return &windows[slot];
}

static void grow(void)
{
    Window *old = windows;
    const UInt n = old ? mask + 1 : 0;
    mask = (n ? 2 * n : MIN_WINDOWS) - 1;
    windows = host_alloc_zeroed("jm.blocks", mask + 1, sizeof *windows);
    for (UInt i = 0; i < n; i++)
        if (old[i].n)
            *window_of(old[i].number) = old[i];
    host_free(old);
}

static void remove_from_window(Window *w, Packed *block)
{
    if (w->n > 1) {
        *block = w->several[--w->n];
        if (w->n > 1)
            return;
        const Packed only = w->several[0];
        host_free(w->several);
        w->only = only;
        return;
    }
    // Close the gap: move back each later window of the run with a home at or before the gap.
    UInt gap = w - windows;
    for (UInt next = (gap + 1) & mask; windows[next].n; next = (next + 1) & mask) {
        if (((next - home_of(windows[next].number)) & mask) >= ((next - gap) & mask)) {
            windows[gap] = windows[next];
            gap = next;
        }
    }
    windows[gap].n = 0;
    used--;
}

static inline Packed *blocks_of(Window *w)
{
    return w->n == 1 ? &w->only : w->several;
}

static inline UInt place_of(Addr address)
{
    return address % (1u << WINDOW_BITS) / PLACE_BYTES;
}

// NULL if no block begins at the address.
static inline Packed *block_in(Window *w, Addr address)
{
    Packed *blocks = blocks_of(w);
    for (UInt i = w->n; i-- > 0;)
        if (blocks[i].place == place_of(address))
            return &blocks[i];
    return NULL;
}

// The window has others.
static void add_to_window(Window *w, Packed block)
{
    Packed *several = w->n > 1 ? w->several : NULL;
    if (w->n == 1 || w->n % STEP == 0)
        several = host_realloc("jm.blocks", several, (w->n / STEP + 1) * STEP * sizeof block);
    if (w->n == 1)
        several[0] = w->only;
    several[w->n++] = block;
    w->several = several;
}

// ---- blocks --------------------------------------------------------------------------------------------------

static inline Block unpacked(Packed p)
{
    return (Block){.bytes = p.bytes, .account = p.account, .has_record = p.has_record, .is_custom = p.is_custom};
}

// Sets the window, or the free slot where it belongs.
static Packed *find(Addr address, Window **window)
{
    *window = used ? window_of(address >> WINDOW_BITS) : NULL;
    return used && (*window)->n && address % PLACE_BYTES == 0 ? block_in(*window, address) : NULL;
}

#define RECORD_BIT 0x80000000u
#define CUSTOM_BIT 0x40000000u

// A slab keeps the account and these bits.
static inline UInt tag_of(Block block)
{
    jm_assert(block.account < CUSTOM_BIT);
    return block.account | (block.has_record ? RECORD_BIT : 0) | (block.is_custom ? CUSTOM_BIT : 0);
}

Bool jm_blocks_find(Addr address, Block *block)
{
    SlabBlock small = {0};
    if (jm_slab_find(address, &small)) {
        *block = (Block){.bytes = small.bytes,
                         .account = *small.tag & ~(RECORD_BIT | CUSTOM_BIT),
                         .has_record = (*small.tag & RECORD_BIT) != 0,
                         .is_custom = (*small.tag & CUSTOM_BIT) != 0,
                         .is_small = True};
        return True;
    }
    Window *w;
    const Packed *p = find(address, &w);
    const Odd *o = p ? NULL : jm_map_find(&odd, address);
    if (p || o)
        *block = p ? unpacked(*p) : o->block;
    return p || o;
}

Bool jm_blocks_take(Addr address, Bool is_custom, Block *block)
{
    Window *w;
    Packed *p = find(address, &w);
    Odd *o = p ? NULL : jm_map_find(&odd, address);
    if (!(p ? p->is_custom == is_custom : o && o->block.is_custom == is_custom))
        return False;
    *block = p ? unpacked(*p) : o->block;
    if (p)
        remove_from_window(w, p);
    else
        host_free(jm_map_remove(&odd, address));
    n_custom -= is_custom;
    return True;
}

static Bool fits(Addr address, const Block *b)
{
    return address % PLACE_BYTES == 0 && b->bytes < MAX_BYTES && b->account < MAX_ACCOUNT;
}

Bool jm_blocks_add(Addr address, Block block, Block *stale)
{
    SlabBlock small;
    if (jm_slab_find(address, &small)) {
        *small.tag = tag_of(block);
        return n_custom && jm_blocks_take(address, True, stale);
    }
    Bool is_stale = False;
    n_custom += block.is_custom;
    if (UNLIKELY(!fits(address, &block) || jm_map_n(&odd))) {
        is_stale = jm_blocks_take(address, False, stale) || jm_blocks_take(address, True, stale);
        if (!fits(address, &block)) {
            Odd *o = host_alloc("jm.blocks", sizeof *o);
            *o = (Odd){{.key = address}, block};
            jm_map_add(&odd, o);
            return is_stale;
        }
    }
    // A search for what is not there takes 8 steps at 3/4; at 7/8 it would take 32.
    if (used >= mask / 4 * 3)
        grow();
    Window *w = window_of(address >> WINDOW_BITS);
    const Packed now = {place_of(address), block.bytes, block.account, block.has_record, block.is_custom};
    Packed *old = w->n ? block_in(w, address) : NULL;
    if (UNLIKELY(old != NULL)) {
        *stale = unpacked(*old);
        n_custom -= stale->is_custom;
        w->has_long |= block.bytes >= LONG_BYTES;
        *old = now;
        return True;
    }
    if (w->n) {
        add_to_window(w, now);
    } else {
        *w = (Window){.number = address >> WINDOW_BITS, .n = 1, .only = now};
        used++;
    }
    w->has_long |= block.bytes >= LONG_BYTES;
    return is_stale;
}

void jm_blocks_prefetch(Addr address)
{
    __builtin_prefetch(&windows[home_of(address >> WINDOW_BITS)]);
}

void jm_blocks_each(Bool is_custom, ULong least_bytes, void (*use)(Addr address, ULong bytes))
{
    if (is_custom && !n_custom)
        return;
    for (Window *w = windows; used && w <= windows + mask; w++)
        for (UInt i = 0; i < w->n && (w->has_long || least_bytes < LONG_BYTES); i++) {
            const Packed p = blocks_of(w)[i];
            if (p.bytes >= least_bytes && p.is_custom == is_custom && (p.account || is_custom))
                use(((Addr)w->number << WINDOW_BITS) + p.place * PLACE_BYTES, p.bytes);
        }
    for (const Odd *o = NULL; (o = jm_map_next(&odd, (void *)o)) != NULL;)
        if (o->block.bytes >= least_bytes && o->block.is_custom == is_custom && (o->block.account || is_custom))
            use(o->node.key, o->block.bytes);
}
