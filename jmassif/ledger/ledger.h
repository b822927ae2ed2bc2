// SPDX-License-Identifier: GPL-2.0-or-later
//
// The ledger: every live byte is in exactly one account, an account is (stack, kind, owner), and the totals are always
// the sums of the accounts. Sizes are in bytes.
//
// A peak is the moment of the largest total; of several such moments, the one with the least in caches (device or
// pinned bytes that a caching allocator keeps, the driver's slack), and of these the first. A caching allocator's
// reserve stands at its maximum for most of a run, so the total alone does not choose a useful moment.
//
// Peaks are exact and cost O(1) per event. A peak *rises* while events make each new moment a peak; its composition is
// then what the accounts hold. From the first event that does not raise it, each account saves its value before its
// first change. A peak's composition is thus, for each account, the saved value, or the current one if none is saved.

#pragma once

#include "attribution/kind.h"

typedef UInt AccountId; // from 1; 0 means no account

// PEAK_ALLOCATED is the peak of allocated memory: host and device, without sampled pages (pages.h).
typedef enum { PEAK_TOTAL, PEAK_HOST, PEAK_DEVICE, PEAK_ALLOCATED, N_PEAKS } PeakId;

// An account's numbers, as a reader of the trace sees them.
typedef struct {
    ULong live_bytes;
    ULong live_blocks;
    ULong total_bytes;
    ULong total_blocks;
    ULong temporaries;
} Balance;

// An account is one of its kind and owner for a stack; `node` 0: memory without a stack.
typedef struct {
    UInt node;
    Kind kind;
    OwnerId owner;
} AccountKey;

// From here on pages are sampled, so PEAK_ALLOCATED differs from PEAK_TOTAL. Call before the first account opens.
void jm_ledger_keep_allocated_peak(void);

// Opens an account. `node` 0: memory without a stack. The caller keeps the id: the ledger has no lookup.
AccountId jm_ledger_open(UInt node, Kind kind, OwnerId owner);

// A block of `bytes` is allocated, freed.
void jm_ledger_credit(AccountId account, ULong bytes);
void jm_ledger_debit(AccountId account, ULong bytes);

// The same for a block and its allocator's overhead, in the same memory space: one event.
void jm_ledger_credit_both(AccountId account, ULong bytes, AccountId extra, ULong extra_bytes);
void jm_ledger_debit_both(AccountId account, ULong bytes, AccountId extra, ULong extra_bytes);

// A block changes size, and perhaps its account: one event, so no peak in between.
void jm_ledger_resize(AccountId from, ULong old_bytes, AccountId to, ULong new_bytes);

// Part of a block is handed out as a block of its own, or returned: `bytes` move between two accounts of one memory
// space, so no total changes. Negative `blocks` end a block of `from`, positive ones begin one of `to`.
void jm_ledger_transfer(AccountId from, AccountId to, ULong bytes, Int blocks);

// The same across memory spaces: bytes below an API's call become part of the block that the call returned, or go back.
// With `is_new` they count as allocated there. The sum of host and device stays.
void jm_ledger_carve(AccountId from, AccountId to, ULong bytes, Bool is_new);

// Moves a live block to another account of the same memory space, as if it had been there since `born`: also in peaks
// that include it. Cumulative numbers move too.
void jm_ledger_move(AccountId from, AccountId to, ULong bytes, ULong born);

// Number of changes so far. A block's `born` is this number after its credit.
ULong jm_ledger_n_changes(void);

// Adds `bytes` (may be negative) to the account, in no block.
void jm_ledger_adjust(AccountId account, Long bytes);

// Counts a temporary: the freed block was the last one that its thread had allocated.
void jm_ledger_count_temporary(AccountId account);

ULong jm_ledger_total(Side side);

// Largest total of host and device since it was last taken.
ULong jm_ledger_interval_max(void);
ULong jm_ledger_take_interval_max(void);

Bool jm_ledger_is(AccountId account, UInt node, Kind kind);
OwnerId jm_ledger_owner(AccountId account);
AccountKey jm_ledger_key(AccountId account);
Balance jm_ledger_balance(AccountId account);

// Accounts that changed since the list was last cleared, each once. A snapshot writes only these: a walk over all
// accounts, hundreds of thousands in a PyTorch run, would cost more than the run's allocations.
UInt jm_ledger_n_changed(void);
AccountId jm_ledger_changed(UInt i);
void jm_ledger_clear_changed(void);

// Peaks. `is_news`: the moment changed, or its accounts were corrected, since the last `jm_ledger_peak_told`.
Bool jm_ledger_peak_is_news(PeakId peak);
void jm_ledger_peak_told(PeakId peak);
Bool jm_ledger_peak_is_now(PeakId peak); // no event since
void jm_ledger_peak(PeakId peak, ULong *time, ULong *host_bytes, ULong *device_bytes);

// Restarts the peaks: each is the largest total from now on, at first the current one.
void jm_ledger_restart_peaks(void);

// Calls `use` with the balance at a peak of each account that may have changed since; all others held what they hold
// now.
typedef void (*UseDiffering)(void *context, AccountId account, ULong live_bytes, ULong live_blocks);
void jm_ledger_each_differing(PeakId peak, UseDiffering use, void *context);

// A forked child's trace starts empty: marks all accounts and peaks as changed.
void jm_ledger_mark_all_changed(void);
