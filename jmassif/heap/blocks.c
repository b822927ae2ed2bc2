// SPDX-License-Identifier: GPL-2.0-or-later
//
// Finds a live block by its address: small blocks in their slabs, the others in a table of 16-byte entries.
//
// The table uses linear probing with backward-shift deletion: without tombstones, long runs of malloc and free do not
// slow it down. It consists of shards that grow by a quarter when full. So it is always at least three fifths full
// (at most 27 bytes a block), and growing never needs twice its memory.

#include "heap/blocks.h"
#include "base/table.h"
#include "heap/slab.h"
#include "host/host.h"

// Addresses and sizes are below JM_ADDRESS_SPACE, so both fit into 48 bits.
typedef struct {
    ULong address : 48; // 0: free entry
    ULong bytes_high : 16;
    UInt bytes_low;
    UInt tag; // account; top bits: has_record, is_custom
} Entry;

_Static_assert(sizeof(Entry) == 16, "an entry's bits");

#define RECORD_BIT   0x80000000u
#define CUSTOM_BIT   0x40000000u
#define N_SHARDS     64
#define MIN_CAPACITY 32

typedef struct {
    Entry *entries;
    UInt capacity;
    UInt used;
} Shard;

static Shard shards[N_SHARDS];
static ULong n_custom;

static inline Shard *shard_of(ULong hash)
{
    return &shards[hash >> 58];
}

static inline UInt home_in(const Shard *s, ULong hash)
{
    return (hash & 0xffffffff) * s->capacity >> 32;
}

static inline UInt next_in(const Shard *s, UInt slot)
{
    return slot + 1 < s->capacity ? slot + 1 : 0;
}

// Distance to a later slot, around the end.
static inline UInt distance_in(const Shard *s, UInt from, UInt to)
{
    return to >= from ? to - from : to + s->capacity - from;
}

// Returns the address's slot, or the free slot where it belongs. The shard is never full.
static UInt slot_in(const Shard *s, Addr address, ULong hash)
{
    UInt slot = home_in(s, hash);
    while (s->entries[slot].address && s->entries[slot].address != address)
        slot = next_in(s, slot);
    return slot;
}

static void grow(Shard *s)
{
    Shard old = *s;
    s->capacity = old.capacity ? old.capacity + old.capacity / 4 : MIN_CAPACITY;
    s->entries = host_alloc_zeroed("jm.blocks", s->capacity, sizeof *s->entries);
    for (UInt i = 0; i < old.capacity; i++)
        if (old.entries[i].address)
            s->entries[slot_in(s, old.entries[i].address, jm_hash(old.entries[i].address))] = old.entries[i];
    host_free(old.entries);
}

// Returns NULL if the address is not in the table.
static Entry *find(Addr address)
{
    ULong hash = jm_hash(address);
    Shard *s = shard_of(hash);
    if (!address || !s->capacity)
        return NULL;
    Entry *e = &s->entries[slot_in(s, address, hash)];
    return e->address ? e : NULL;
}

static inline UInt tag_of(Block block)
{
    jm_assert(block.account < CUSTOM_BIT);
    return block.account | (block.has_record ? RECORD_BIT : 0) | (block.is_custom ? CUSTOM_BIT : 0);
}

static inline Block make_block(ULong bytes, UInt tag)
{
    return (Block){.bytes = bytes,
                   .account = tag & ~(RECORD_BIT | CUSTOM_BIT),
                   .has_record = (tag & RECORD_BIT) != 0,
                   .is_custom = (tag & CUSTOM_BIT) != 0};
}

void jm_blocks_add(Addr address, Block block)
{
    SlabBlock small;
    if (jm_slab_find(address, &small)) {
        *small.tag = tag_of(block);
        return;
    }
    ULong hash = jm_hash(address);
    Shard *s = shard_of(hash);
    // A search for what is not there takes 8 steps at 3/4; at 7/8 it would take 32.
    if ((s->used + 1) * 4ULL > s->capacity * 3ULL)
        grow(s);
    Entry *e = &s->entries[slot_in(s, address, hash)];
    jm_assert(!e->address);
    *e = (Entry){address, block.bytes >> 32, (UInt)block.bytes, tag_of(block)};
    s->used++;
    n_custom += block.is_custom;
}

static inline Block block_of(const Entry *e)
{
    return make_block((ULong)e->bytes_high << 32 | e->bytes_low, e->tag);
}

static Block take_from_table(Entry *e)
{
    Block block = block_of(e);
    // Close the gap: move back each later entry of the run with a home at or before the gap.
    Shard *s = shard_of(jm_hash(e->address));
    Entry *entries = s->entries;
    UInt gap = e - entries;
    for (UInt next = next_in(s, gap); entries[next].address; next = next_in(s, next)) {
        UInt home = home_in(s, jm_hash(entries[next].address));
        if (distance_in(s, home, next) >= distance_in(s, gap, next)) {
            entries[gap] = entries[next];
            gap = next;
        }
    }
    entries[gap].address = 0;
    s->used--;
    n_custom -= block.is_custom;
    return block;
}

Bool jm_blocks_find(Addr address, Block *block)
{
    SlabBlock small = {0};
    if (jm_slab_find(address, &small)) {
        *block = make_block(small.bytes, *small.tag);
        block->is_small = True;
        return True;
    }
    const Entry *e = find(address);
    if (e)
        *block = block_of(e);
    return e != NULL;
}

void jm_blocks_remove(Addr address)
{
    Entry *e = find(address);
    if (e)
        take_from_table(e);
}

Bool jm_blocks_take_stale(Addr address, Block *block)
{
    SlabBlock small; // a new one: slabs miss no end, but it may lie where a custom block was
    Entry *e = n_custom || !jm_slab_find(address, &small) ? find(address) : NULL;
    if (!e)
        return False;
    *block = take_from_table(e);
    return True;
}

void jm_blocks_prefetch(Addr address)
{
    const ULong hash = jm_hash(address);
    const Shard *s = shard_of(hash);
    __builtin_prefetch(&s->entries[home_in(s, hash)]);
}

void jm_blocks_each(Bool is_custom, ULong least_bytes, void (*use)(Addr address, ULong bytes))
{
    if (is_custom && !n_custom)
        return;
    for (UInt i = 0; i < N_SHARDS; i++) {
        for (UInt slot = 0; slot < shards[i].capacity; slot++) {
            const Entry *e = &shards[i].entries[slot];
            Block block = block_of(e);
            if (e->address && block.bytes >= least_bytes && block.is_custom == is_custom &&
                (block.account || is_custom))
                use(e->address, block.bytes);
        }
    }
}
