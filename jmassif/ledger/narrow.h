// SPDX-License-Identifier: GPL-2.0-or-later
//
// Packs an account into twelve bytes: a program has accounts by the hundred thousand, and nearly all hold a few small
// blocks. When a number outgrows its bits, all numbers of the account move to a full-width Balance, to which the
// account points from then on. For ledger.c alone.

#ifndef JM_NARROW_H
#define JM_NARROW_H

#include "base/table.h"
#include "host/host.h"
#include "ledger/balance.h"

#define BYTES_BITS       13
#define BLOCKS_BITS      6
#define TEMPORARIES_BITS 5

typedef struct {
    UInt node;
    UInt owner : 8;
    UInt kind : 4;
    UInt side : 2;
    UInt is_sampled : 1;
    UInt is_changed : 1;     // and in the list of changed accounts
    UInt saved_in : N_PEAKS; // one bit per section
    UInt is_wide : 1;
    UInt total_blocks : BLOCKS_BITS;
    UInt temporaries : TEMPORARIES_BITS;
    union {
        struct {
            UInt live_bytes : BYTES_BITS;
            UInt total_bytes : BYTES_BITS;
            UInt live_blocks : BLOCKS_BITS;
        };
        UInt wide; // index into jm_wide_balances
    };
} Account;

_Static_assert(N_KINDS <= 16 && sizeof(Account) == 12, "an account's bits");

extern Table jm_wide_balances;

// Moves the account's numbers to a full-width balance.
void jm_widen(Account *a);

static inline Balance jm_balance_of(const Account *a)
{
    if (a->is_wide)
        return *(const Balance *)jm_table_at(&jm_wide_balances, a->wide);
    return (Balance){a->live_bytes, a->live_blocks, a->total_bytes, a->total_blocks, a->temporaries};
}

static inline void jm_balance_sum(Balance *b, Balance more)
{
    b->live_bytes += more.live_bytes;
    b->live_blocks += more.live_blocks;
    b->total_bytes += more.total_bytes;
    b->total_blocks += more.total_blocks;
    b->temporaries += more.temporaries;
}

// Inlined so that constant zeros in `more` cost nothing.
static inline __attribute__((always_inline)) void jm_balance_add(Account *a, Balance more)
{
    if (!a->is_wide) {
        Balance b = jm_balance_of(a);
        jm_balance_sum(&b, more);
        if (!(b.live_bytes >> BYTES_BITS || b.total_bytes >> BYTES_BITS || b.live_blocks >> BLOCKS_BITS ||
              b.total_blocks >> BLOCKS_BITS || b.temporaries >> TEMPORARIES_BITS)) {
            a->live_bytes = b.live_bytes;
            a->live_blocks = b.live_blocks;
            a->total_bytes = b.total_bytes;
            a->total_blocks = b.total_blocks;
            a->temporaries = b.temporaries;
            return;
        }
        jm_widen(a);
    }
    Balance *b = jm_table_at(&jm_wide_balances, a->wide);
    jm_balance_sum(b, more);
    // Also checks narrow numbers: one below 0 does not fit and is widened.
    jm_assert((Long)b->live_bytes >= 0 && (Long)b->live_blocks >= 0);
}

#endif
