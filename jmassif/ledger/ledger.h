// SPDX-License-Identifier: GPL-2.0-or-later
//
// The ledger: every live byte is in exactly one account, an account is (stack, kind, owner), and the totals are always
// the sums of the accounts.
//
// A peak is the moment at which a total is largest; of several, the one with the least in caches (bytes of the device,
// or pinned, that a caching allocator keeps), and of these the first. A caching allocator's reserve stands at its
// maximum for most of a run: what is asked is when the program had the most of it.
//
// Peaks are exact and cost O(1) per event. Right after an event that makes one its peak *rises*, and its composition is
// simply what the accounts hold. Before the next event that does not, a *section* of the history begins, in
// which an account that is about to change for the first time saves its value first. So the composition of a peak is:
// of each account what the first section since the peak has saved, and what it holds now if none has. Peaks share their
// sections: that of a peak goes on until the next one ends, and is joined to the one before it when its peak rises
// again. A saved value moves down no more often than there are peaks.

#ifndef JM_LEDGER_H
#define JM_LEDGER_H

#include "base/compat.h"
#include "ledger/balance.h"

// From here on pages are sampled, so the peak of what was allocated is one of its own.
void jm_ledger_keep_allocated_peak(void);

// Makes an account. `node` 0: memory without a stack. Whoever makes it keeps its id: the ledger does not look up.
AccountId jm_ledger_open(UInt node, Kind kind, OwnerId owner);

// A block of `bytes` comes to life, dies.
void jm_ledger_credit(AccountId account, ULong bytes);
void jm_ledger_debit(AccountId account, ULong bytes);

// The same of a block and of what its allocator adds to it, which is of the same side: one event.
void jm_ledger_credit_both(AccountId account, ULong bytes, AccountId extra, ULong extra_bytes);
void jm_ledger_debit_both(AccountId account, ULong bytes, AccountId extra, ULong extra_bytes);

// A block changes size, and with it perhaps the account that answers for it: one event, so no peak in between.
void jm_ledger_resize(AccountId from, ULong old_bytes, AccountId to, ULong new_bytes);

// Part of a block is handed out as a block of its own, or comes back: `bytes` go from one account to another of the
// same side, so no total changes. A negative `blocks` ends one of `from`, a positive one makes one of `to`.
void jm_ledger_transfer(AccountId from, AccountId to, ULong bytes, Int blocks);

// Likewise with memory and accounts of either side: bytes of what lies below a call's API become part of a block that
// it handed out, and with `is_new` count as allocated there, or go back. The sum of both sides stays.
void jm_ledger_carve(AccountId from, AccountId to, ULong bytes, Bool is_new);

// A live block turns out to be another account's, of the same side, and to have been so since it was `born`: in the
// peaks that have seen it as well. What the accounts have allocated in all moves along.
void jm_ledger_move(AccountId from, AccountId to, ULong bytes, ULong born);

// How often the ledger has changed: a block is born at what this says after its credit.
ULong jm_ledger_n_changes(void);

// The account holds `bytes` more (or less) in no block of its own.
void jm_ledger_adjust(AccountId account, Long bytes);

// The block just freed was the last one its thread had allocated.
void jm_ledger_count_temporary(AccountId account);

ULong jm_ledger_total(Side side);
Long jm_ledger_live_bytes(AccountId account);

// Largest total (both sides) since it was taken last.
ULong jm_ledger_interval_max(void);
ULong jm_ledger_take_interval_max(void);

UInt jm_ledger_n_accounts(void); // accounts are 1 … n
Bool jm_ledger_is(AccountId account, UInt node, Kind kind);
OwnerId jm_ledger_owner(AccountId account);
void jm_ledger_describe(AccountId account, UInt *node, Kind *kind, OwnerId *owner);
Balance jm_ledger_balance(AccountId account);

// The accounts that changed since the list was last cleared, each once. A snapshot tells these and no others: a walk
// over all accounts, hundreds of thousands in a PyTorch run, would cost more than the run's allocations.
UInt jm_ledger_n_changed(void);
AccountId jm_ledger_changed(UInt i);
void jm_ledger_clear_changed(void);

// Peaks. `is_news`: it is another moment, or what accounts held then has been corrected, since it was `told`.
Bool jm_ledger_peak_is_news(PeakId peak);
void jm_ledger_peak_told(PeakId peak);
void jm_ledger_peak(PeakId peak, ULong *time, ULong *host_bytes, ULong *device_bytes);

// Peaks begin anew: each is the largest total from now on, and until the next event that is what is held now.
void jm_ledger_restart_peaks(void);

// Calls `use` with what each account held at a peak that may hold something else now; all others held what they hold
// now.
typedef void (*UseDiffering)(void *context, AccountId account, ULong live_bytes, ULong live_blocks);
void jm_ledger_each_differing(PeakId peak, UseDiffering use, void *context);

// A forked child's trace starts from nothing: everything is to be told again.
void jm_ledger_mark_all_changed(void);

void jm_ledger_stats(void); // tells what it keeps (stats.h)

#endif
