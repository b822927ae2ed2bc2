// SPDX-License-Identifier: GPL-2.0-or-later
//
// A growing table of records with stable addresses. Records are in chunks that are allocated once, so growth copies
// nothing and never needs twice the memory: the recorder must not fill a board of 4 GB.

#pragma once

#include "host/types.h"

#define JM_CHUNK_BITS 10
#define JM_CHUNK      (1u << JM_CHUNK_BITS)

typedef struct {
    const HChar *name; // cost centre of Valgrind's allocator
    SizeT record_bytes;
    UChar **chunks;
    UInt n_chunks;
    UInt n; // records in use, reserved record 0 included: index 0 can mean "no record"
} Table;

#define JM_TABLE(name, type)                                                                                           \
    {                                                                                                                  \
        (name), sizeof(type), NULL, 0, 1                                                                               \
    }

// Append a zeroed record and return its index (from 1).
UInt jm_table_add(Table *t);

// Remove the last record.
void jm_table_drop_last(Table *t);

static inline void *jm_table_at(const Table *t, UInt i)
{
    return t->chunks[i >> JM_CHUNK_BITS] + (SizeT)(i & (JM_CHUNK - 1)) * t->record_bytes;
}

// Hash index: hashes, of which the lower 32 bits count, to record numbers; open addressing, 8 bytes per slot. The
// caller compares keys, of entries with the same hash.
typedef struct {
    UInt entry; // 0: free
    UInt hash;
} IndexSlot;

typedef struct {
    const HChar *name;
    IndexSlot *slots;
    UInt mask; // capacity - 1
    UInt used;
    UInt limit; // grows when `used` reaches it
} Index;

#define JM_INDEX(name)                                                                                                 \
    {                                                                                                                  \
        (name), NULL, 0, 0, 0                                                                                          \
    }

void jm_index_grow(Index *x);

// The slot of the entry with this hash for which the expression `is_same` of the variable `record` holds. If there is
// none, a free slot: fill it by jm_index_put before the next look-up. A macro to inline the comparison.
#define JM_INDEX_FIND(x, key_hash, record, is_same)                                                                    \
    ({                                                                                                                 \
        const UInt hash_ = key_hash;                                                                                   \
        if ((x)->used >= (x)->limit)                                                                                   \
            jm_index_grow(x);                                                                                          \
        UInt at_ = hash_ & (x)->mask;                                                                                  \
        for (UInt record; (record = (x)->slots[at_].entry) != 0 && !((x)->slots[at_].hash == hash_ && (is_same));)     \
            at_ = (at_ + 1) & (x)->mask;                                                                               \
        (x)->slots[at_].hash = hash_;                                                                                  \
        &(x)->slots[at_];                                                                                              \
    })

static inline UInt jm_index_put(Index *x, IndexSlot *slot, UInt entry)
{
    x->used++;
    return slot->entry = entry;
}

// Map a key to one of 2^bits slots: multiplicative hashing by the golden ratio (Knuth). Weaker than jm_hash, but a
// single multiplication.
static inline UInt jm_place(ULong key, UInt bits)
{
    return key * 0x9e3779b97f4a7c15ULL >> (64 - bits);
}

static inline ULong jm_hash(ULong a)
{
    // Finaliser of SplitMix64 (Steele, Lea, Flood 2014): full avalanche in five operations.
    a ^= a >> 30;
    a *= 0xbf58476d1ce4e5b9ULL;
    a ^= a >> 27;
    a *= 0x94d049bb133111ebULL;
    return a ^ (a >> 31);
}
