// SPDX-License-Identifier: GPL-2.0-or-later
//
// Linear probing with backward-shift deletion: no tombstones, so long runs of malloc and free do not slow it down.

#include "blocks.h"
#include "stats.h"
#include "table.h"

typedef struct {
    Addr address; // 0: free
    UInt bytes;   // HUGE: the size is in huge_sizes
    UInt account; // top bits: has_record, is_custom
} Entry;

#define HUGE_SIZE    0xffffffffu
#define RECORD_BIT   0x80000000u
#define CUSTOM_BIT   0x40000000u
#define MIN_CAPACITY (1u << 14)

static Entry *entries;
static ULong mask;
static ULong n_entries;
static ULong n_custom;

// Sizes that do not fit 32 bits: rare, so a list will do.
typedef struct {
    Addr address;
    ULong bytes;
} HugeSize;
static XArray *huge_sizes;

static inline ULong home_of(Addr address)
{
    return jm_hash(address) & mask;
}

static ULong slot_of(Addr address)
{
    ULong slot = home_of(address);
    while (entries[slot].address && entries[slot].address != address)
        slot = (slot + 1) & mask;
    return slot;
}

static void rebuild(ULong capacity)
{
    Entry *old = entries;
    ULong old_capacity = old ? mask + 1 : 0;
    entries = VG_(calloc)("jm.blocks", capacity, sizeof *entries);
    mask = capacity - 1;
    for (ULong i = 0; i < old_capacity; i++)
        if (old[i].address)
            entries[slot_of(old[i].address)] = old[i];
    if (old)
        VG_(free)(old);
}

static ULong huge_size(Addr address, Bool take_out)
{
    for (Word i = 0; i < VG_(sizeXA)(huge_sizes); i++) {
        HugeSize *h = VG_(indexXA)(huge_sizes, i);
        if (h->address == address) {
            ULong bytes = h->bytes;
            if (take_out)
                VG_(removeIndexXA)(huge_sizes, i);
            return bytes;
        }
    }
    tl_assert(0);
}

void jm_blocks_add(Addr address, Block block)
{
    tl_assert(address && block.account < CUSTOM_BIT);
    if (!entries)
        rebuild(MIN_CAPACITY);
    else if (n_entries * 5 >= (mask + 1) * 4)
        rebuild((mask + 1) * 2);
    ULong slot = slot_of(address);
    tl_assert(!entries[slot].address);
    entries[slot].address = address;
    entries[slot].account = block.account | (block.has_record ? RECORD_BIT : 0) | (block.is_custom ? CUSTOM_BIT : 0);
    if (block.bytes >= HUGE_SIZE) {
        if (!huge_sizes)
            huge_sizes = VG_(newXA)(VG_(malloc), "jm.blocks", VG_(free), sizeof(HugeSize));
        HugeSize h = {address, block.bytes};
        VG_(addToXA)(huge_sizes, &h);
        entries[slot].bytes = HUGE_SIZE;
    } else {
        entries[slot].bytes = (UInt)block.bytes;
    }
    n_entries++;
    n_custom += block.is_custom;
}

static Bool look(Addr address, Block *block, Bool take_out)
{
    if (!entries || !address)
        return False;
    ULong slot = slot_of(address);
    Entry *e = &entries[slot];
    if (!e->address)
        return False;
    block->bytes = e->bytes == HUGE_SIZE ? huge_size(address, take_out) : e->bytes;
    block->account = e->account & ~(RECORD_BIT | CUSTOM_BIT);
    block->has_record = (e->account & RECORD_BIT) != 0;
    block->is_custom = (e->account & CUSTOM_BIT) != 0;
    if (!take_out)
        return True;
    n_custom -= block->is_custom;

    // Close the gap: move back every later entry of the run whose home lies at or before the gap.
    ULong gap = slot;
    for (ULong next = (gap + 1) & mask; entries[next].address; next = (next + 1) & mask) {
        ULong home = home_of(entries[next].address);
        if (((next - home) & mask) >= ((next - gap) & mask)) {
            entries[gap] = entries[next];
            gap = next;
        }
    }
    entries[gap].address = 0;
    n_entries--;
    return True;
}

Bool jm_blocks_remove(Addr address, Block *block)
{
    return look(address, block, True);
}
Bool jm_blocks_find(Addr address, Block *block)
{
    return look(address, block, False);
}
void jm_blocks_set_account(Addr address, AccountId account)
{
    Entry *e = &entries[slot_of(address)];
    tl_assert(e->address && account < CUSTOM_BIT);
    e->account = account | (e->account & (RECORD_BIT | CUSTOM_BIT));
}
ULong jm_blocks_count(void)
{
    return n_entries;
}

void jm_blocks_each_custom(void (*use)(Addr address, ULong bytes))
{
    ULong left = n_custom;
    for (ULong slot = 0; left; slot++) {
        if (!entries[slot].address || !(entries[slot].account & CUSTOM_BIT))
            continue;
        Block block;
        look(entries[slot].address, &block, False);
        use(entries[slot].address, block.bytes);
        left--;
    }
}

void jm_blocks_stats(void)
{
    jm_stats_row("jm.blocks", "live heap blocks", n_entries, entries ? (mask + 1) * sizeof *entries : 0);
    jm_stats_array("jm.blocks", "sizes beyond 32 bits", huge_sizes, sizeof(HugeSize));
}
