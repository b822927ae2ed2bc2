// SPDX-License-Identifier: GPL-2.0-or-later
//
// Implements ledger.h. Each event passes through apply(): it closes peaks, lets accounts save their values, then
// changes balances and totals, in this order, so that peaks are exact. Corrections (jm_ledger_move) also change saved
// values.

#include "ledger/ledger.h"
#include "attribution/owner.h"
#include "base/clock.h"
#include "base/table.h"
#include "host/host.h"

// ---- narrow accounts -----------------------------------------------------------------------------------------

// An account takes twelve bytes: a program has accounts by the hundred thousand, and nearly all hold a few small
// blocks. When a number outgrows its bits, all numbers of the account move to a full-width Balance, to which it points
// from then on.
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
    UInt saved_in : N_PEAKS; // one bit per peak
    UInt is_wide : 1;
    UInt total_blocks : BLOCKS_BITS;
    UInt temporaries : TEMPORARIES_BITS;
    union {
        struct {
            UInt live_bytes : BYTES_BITS;
            UInt total_bytes : BYTES_BITS;
            UInt live_blocks : BLOCKS_BITS;
        };
        UInt wide; // index into wide_balances
    };
} Account;

_Static_assert(N_KINDS <= 16 && sizeof(Account) == 12, "an account's bits");

static Table wide_balances = JM_TABLE("jm.account", Balance);

static inline Balance balance_of(const Account *a)
{
    if (a->is_wide)
        return *(const Balance *)jm_table_at(&wide_balances, a->wide);
    return (Balance){a->live_bytes, a->live_blocks, a->total_bytes, a->total_blocks, a->temporaries};
}

// Moves the account's numbers to a full-width balance.
static __attribute__((noinline)) void widen(Account *a)
{
    Balance b = balance_of(a);
    a->wide = jm_table_add(&wide_balances);
    a->is_wide = True;
    *(Balance *)jm_table_at(&wide_balances, a->wide) = b;
}

static inline void sum_up(Balance *b, Balance more)
{
    b->live_bytes += more.live_bytes;
    b->live_blocks += more.live_blocks;
    b->total_bytes += more.total_bytes;
    b->total_blocks += more.total_blocks;
    b->temporaries += more.temporaries;
}

// Inlined so that constant zeros in `more` cost nothing.
static inline __attribute__((always_inline)) void change_balance(Account *a, Balance more)
{
    if (!a->is_wide) {
        Balance b = balance_of(a);
        sum_up(&b, more);
        if (!(b.live_bytes >> BYTES_BITS || b.total_bytes >> BYTES_BITS || b.live_blocks >> BLOCKS_BITS ||
              b.total_blocks >> BLOCKS_BITS || b.temporaries >> TEMPORARIES_BITS)) {
            a->live_bytes = b.live_bytes;
            a->live_blocks = b.live_blocks;
            a->total_bytes = b.total_bytes;
            a->total_blocks = b.total_blocks;
            a->temporaries = b.temporaries;
            return;
        }
        widen(a);
    }
    Balance *b = jm_table_at(&wide_balances, a->wide);
    sum_up(b, more);
    // Also checks narrow numbers: one below 0 does not fit and is widened.
    jm_assert((Long)b->live_bytes >= 0 && (Long)b->live_blocks >= 0);
}

// ---- peaks ---------------------------------------------------------------------------------------------------

// An account's balance at some peaks, saved before its first change since.
typedef struct {
    AccountId account;
    UInt blocks; // 2^32 live blocks of one account would take the block table alone 64 GiB
    ULong bytes;
} Saved;

typedef struct {
    ULong max_bytes;
    ULong cached_bytes; // part of max_bytes
    ULong time;
    ULong side_bytes[2]; // host and device totals at the peak
    ULong closed_at;     // jm_ledger_n_changes() when it stopped rising
    Bool rising;         // no event since, so live values are the composition
    Bool grown;          // since it was last written
} Peak;

static Table changed = JM_TABLE("jm.ledger.changed", AccountId);

// Peaks with a state of their own. Without device memory PEAK_HOST equals PEAK_TOTAL, without pages PEAK_ALLOCATED
// does; neither is kept twice.
static Bool has_device;
static Bool has_pages;
static PeakId kept[N_PEAKS] = {PEAK_TOTAL};
static UInt n_kept = 1;
static Table accounts = JM_TABLE("jm.account", Account);
static Peak peaks[N_PEAKS];

// Indexed by the set of peaks that share the balances. Usually all peaks are over, so an account is saved once.
#define N_SETS (1u << N_PEAKS)
static Table saved[N_SETS] = {[0 ... N_SETS - 1] = JM_TABLE("jm.ledger.saved", Saved)};

static UInt n_rising;
static UInt closed; // one bit per peak that is over: accounts save what they held

// Bytes of the accounts that count for the totals, or a change of these.
typedef struct {
    ULong side[2];
    ULong sampled;   // part of the host's
    ULong cached[2]; // part of each memory space's
} Totals;

static Totals totals;
static ULong n_changes;
static ULong interval_max;

static inline Account *at(AccountId id)
{
    return jm_table_at(&accounts, id);
}

static inline PeakId kept_as(PeakId p)
{
    return (p == PEAK_HOST && !has_device) || (p == PEAK_ALLOCATED && !has_pages) ? PEAK_TOTAL : p;
}

// A peak's total in `t`, or the change of it.
static inline ULong of_peak(PeakId p, const Totals *t)
{
    return (p == PEAK_DEVICE ? 0 : t->side[SIDE_HOST]) + (p == PEAK_HOST ? 0 : t->side[SIDE_DEVICE]) -
           (p == PEAK_ALLOCATED ? t->sampled : 0);
}

// The part of of_peak() that is in caches.
static inline ULong cached_of(PeakId p, const Totals *t)
{
    return (p == PEAK_DEVICE ? 0 : t->cached[SIDE_HOST]) + (p == PEAK_HOST ? 0 : t->cached[SIDE_DEVICE]);
}

_Static_assert(KIND_HEAP == 0 && KIND_HEAP_OVERHEAD == 1, "one comparison tells");

// Slack is there within a call that has committed memory for a block and has not made it yet.
static inline Bool is_cache(const Account *a)
{
    return (a->owner == JM_OWNER_CACHE && (a->side == SIDE_DEVICE || a->kind == KIND_PINNED)) ||
           (a->owner == JM_OWNER_SLACK && a->kind == KIND_DRIVER);
}

AccountId jm_ledger_open(UInt node, Kind kind, OwnerId owner)
{
    AccountId id = jm_table_add(&accounts);
    Account *a = at(id);
    a->node = node;
    a->kind = kind;
    a->owner = owner;
    a->side = jm_kind_side(kind);
    a->is_sampled = has_pages && jm_kinds[kind].is_sampled;
    return id;
}

static __attribute__((noinline)) void save(AccountId id, UInt set, ULong bytes, UInt blocks)
{
    *(Saved *)jm_table_at(&saved[set], jm_table_add(&saved[set])) = (Saved){id, blocks, bytes};
    at(id)->saved_in |= set;
}

// Call before the account changes: saves what it held at the peaks that are over, if this is its first change since.
static inline void save_for_peaks(AccountId id, const Account *a)
{
    n_changes++;
    const UInt missing = closed & ~a->saved_in;
    if (missing) {
        const Balance now = balance_of(a);
        save(id, missing, now.live_bytes, now.live_blocks);
    }
}

// Call before an event that does not raise the peak: if it was rising, the peak is now.
static inline void close_peak(PeakId p)
{
    Peak *peak = &peaks[p];
    if (!peak->rising)
        return;
    peak->rising = False;
    n_rising--;
    peak->closed_at = n_changes;
    closed |= 1u << p;
}

// Gives all balances of a set of peaks to another set.
static void pass_on(UInt from, UInt to)
{
    const Table given = saved[from];
    const Bool is_moved = to && saved[to].n == 1;
    for (UInt i = 1; i < given.n; i++) {
        const Saved *e = jm_table_at(&given, i);
        at(e->account)->saved_in &= ~from;
        at(e->account)->saved_in |= to;
        if (to && !is_moved)
            save(e->account, to, e->bytes, e->blocks);
    }
    if (is_moved) {
        saved[from] = saved[to];
        saved[to] = given;
    }
    saved[from].n = 1;
}

// Call when a peak rises again after it was over.
static __attribute__((noinline)) void reopen(PeakId p)
{
    for (UInt set = 1; set < N_SETS; set++)
        if ((set >> p & 1) && saved[set].n > 1)
            pass_on(set, set & ~(1u << p));
    closed &= ~(1u << p);
}

// Call after a total rose, or caches fell.
static inline void raise_peak(PeakId p)
{
    Peak *peak = &peaks[p];
    ULong total = of_peak(p, &totals), cached = cached_of(p, &totals);
    if (total < peak->max_bytes || (total == peak->max_bytes && cached >= peak->cached_bytes))
        return;
    peak->max_bytes = total;
    peak->cached_bytes = cached;
    n_rising += !peak->rising;
    peak->rising = True;
    if (closed >> p & 1)
        reopen(p);
    peak->grown = True;
    if (!has_device && p == PEAK_TOTAL)
        peaks[PEAK_HOST].grown = True;
    peak->time = jm_clock_cached();
    peak->side_bytes[SIDE_HOST] = totals.side[SIDE_HOST];
    peak->side_bytes[SIDE_DEVICE] = totals.side[SIDE_DEVICE];
}

void jm_ledger_restart_peaks(void)
{
    for (UInt i = 0; i < n_kept; i++) {
        peaks[kept[i]].max_bytes = 0;
        peaks[kept[i]].cached_bytes = ~0ULL; // so that the current total is a new peak, even if it is 0
        raise_peak(kept[i]);
    }
}

static inline void mark_changed(AccountId id, Account *a)
{
    if (!a->is_changed) {
        a->is_changed = True;
        *(AccountId *)jm_table_at(&changed, jm_table_add(&changed)) = id;
    }
}

// Call at the first device memory: from here on the host's peak differs from the total's.
static __attribute__((noinline)) void part_peaks(void)
{
    const Bool grown = peaks[PEAK_HOST].grown;
    peaks[PEAK_HOST] = peaks[PEAK_TOTAL];
    peaks[PEAK_HOST].grown = grown;
    for (UInt set = 1; set < N_SETS; set++)
        if ((set >> PEAK_TOTAL & 1) && !(set >> PEAK_HOST & 1))
            pass_on(set, set | 1u << PEAK_HOST);
    closed |= (closed >> PEAK_TOTAL & 1) << PEAK_HOST;
    has_device = True;
    n_rising += peaks[PEAK_HOST].rising;
    kept[n_kept++] = PEAK_HOST;
    kept[n_kept++] = PEAK_DEVICE;
}

void jm_ledger_keep_allocated_peak(void)
{
    jm_assert(accounts.n == 1);
    has_pages = True;
    kept[n_kept++] = PEAK_ALLOCATED;
}

// ---- the protocol of a change ---------------------------------------------------------------------------------

// One account's part in an event.
typedef struct {
    AccountId id;
    Balance more; // changes of its numbers
} Leg;

// Adds the change of an account that is not the heap's.
static inline void add_other(Totals *change, const Account *a, ULong bytes)
{
    if (a->side != SIDE_NONE)
        change->side[a->side] += bytes;
    if (is_cache(a))
        change->cached[a->side] += bytes;
    if (a->is_sampled)
        change->sampled += bytes;
}

// Adds the change to the totals. False: no peak can rise by it.
static inline Bool add_to_totals(const Totals *change, Bool is_heap_alone)
{
    totals.side[SIDE_HOST] += change->side[SIDE_HOST];
    if (LIKELY(is_heap_alone))
        return (Long)change->side[SIDE_HOST] > 0;
    totals.side[SIDE_DEVICE] += change->side[SIDE_DEVICE];
    totals.sampled += change->sampled;
    totals.cached[SIDE_HOST] += change->cached[SIDE_HOST];
    totals.cached[SIDE_DEVICE] += change->cached[SIDE_DEVICE];
    return (Long)change->side[SIDE_HOST] > 0 || (Long)change->side[SIDE_DEVICE] > 0 || (Long)change->sampled < 0 ||
           (Long)change->cached[SIDE_HOST] < 0 || (Long)change->cached[SIDE_DEVICE] < 0;
}

// Applies an event at once, so that no total passes through a value in between. The order makes peaks exact: peaks that
// do not rise close first, accounts then save their values, and only then change. Inlined so that constant legs cost
// nothing where nothing changes.
static inline __attribute__((always_inline)) void apply(const Leg *legs, UInt n)
{
    Account *account[2];
    Totals change = {{0, 0}, 0, {0, 0}};
    Bool is_heap_alone = True;
#pragma GCC unroll 2
    for (UInt i = 0; i < n; i++) {
        const Account *a = account[i] = at(legs[i].id);
        if (LIKELY(a->kind <= KIND_HEAP_OVERHEAD)) { // nearly all: they count for the host's total only
            change.side[SIDE_HOST] += legs[i].more.live_bytes;
        } else {
            is_heap_alone = False;
            add_other(&change, a, legs[i].more.live_bytes);
        }
    }
    if (change.side[SIDE_DEVICE] && !has_device)
        part_peaks();
    for (UInt i = 0; n_rising && i < n_kept; i++) {
        const Long bytes = of_peak(kept[i], &change);
        if (bytes < 0 || (bytes == 0 && (Long)cached_of(kept[i], &change) >= 0))
            close_peak(kept[i]);
    }
#pragma GCC unroll 2
    for (UInt i = 0; i < n; i++) {
        save_for_peaks(legs[i].id, account[i]);
        mark_changed(legs[i].id, account[i]);
        change_balance(account[i], legs[i].more);
    }
    if (!add_to_totals(&change, is_heap_alone))
        return;
    for (UInt i = 0; i < n_kept; i++)
        raise_peak(kept[i]);
    ULong both = of_peak(PEAK_TOTAL, &totals);
    if (both > interval_max)
        interval_max = both;
}

void jm_ledger_credit(AccountId account, ULong bytes)
{
    jm_clock_traffic_bytes += bytes; // first: it may be the clock that gives a peak's time (--time-unit=B)
    const Leg legs[] = {{account, {bytes, 1, bytes, 1, 0}}};
    apply(legs, 1);
}

void jm_ledger_debit(AccountId account, ULong bytes)
{
    const Leg legs[] = {{account, {-bytes, -1, 0, 0, 0}}};
    apply(legs, 1);
    jm_clock_traffic_bytes += bytes;
}

void jm_ledger_credit_both(AccountId account, ULong bytes, AccountId extra, ULong extra_bytes)
{
    jm_clock_traffic_bytes += bytes + extra_bytes;
    const Leg legs[] = {{account, {bytes, 1, bytes, 1, 0}}, {extra, {extra_bytes, 1, extra_bytes, 1, 0}}};
    apply(legs, 2);
}

void jm_ledger_debit_both(AccountId account, ULong bytes, AccountId extra, ULong extra_bytes)
{
    const Leg legs[] = {{account, {-bytes, -1, 0, 0, 0}}, {extra, {-extra_bytes, -1, 0, 0, 0}}};
    apply(legs, 2);
    jm_clock_traffic_bytes += bytes + extra_bytes;
}

void jm_ledger_resize(AccountId from, ULong old_bytes, AccountId to, ULong new_bytes)
{
    jm_clock_traffic_bytes += new_bytes > old_bytes ? new_bytes - old_bytes : old_bytes - new_bytes;
    // A resize counts as one more allocation, of the new size.
    if (from == to) {
        const Leg legs[] = {{to, {new_bytes - old_bytes, 0, new_bytes, 1, 0}}};
        apply(legs, 1);
    } else {
        const Leg legs[] = {{from, {-old_bytes, -1, 0, 0, 0}}, {to, {new_bytes, 1, new_bytes, 1, 0}}};
        apply(legs, 2);
    }
}

void jm_ledger_transfer(AccountId from, AccountId to, ULong bytes, Int blocks)
{
    jm_assert(at(from)->side == at(to)->side);
    const ULong ended = blocks < 0 ? -1 : 0;
    const Balance more = blocks > 0 ? (Balance){bytes, 1, bytes, 1, 0} : (Balance){bytes, 0, 0, 0, 0};
    const Leg legs[] = {{from, {-bytes, ended, 0, 0, 0}}, {to, more}};
    apply(legs, 2);
    if (blocks != 0)
        jm_clock_traffic_bytes += bytes;
}

void jm_ledger_carve(AccountId from, AccountId to, ULong bytes, Bool is_new)
{
    jm_assert((at(from)->side == SIDE_NONE) == (at(to)->side == SIDE_NONE));
    const Leg legs[] = {{from, {-bytes, 0, 0, 0, 0}}, {to, {bytes, 0, is_new ? bytes : 0, 0, 0}}};
    apply(legs, 2);
}

void jm_ledger_adjust(AccountId account, Long bytes)
{
    const Leg legs[] = {{account, {bytes, 0, bytes > 0 ? bytes : 0, 0, 0}}};
    apply(legs, 1);
}

void jm_ledger_count_temporary(AccountId account)
{
    change_balance(at(account), (Balance){.temporaries = 1});
}

// ---- corrections ---------------------------------------------------------------------------------------------

// Adds to what the account held at these peaks, which have saved the account, mostly not long ago.
static void correct(UInt wanted, AccountId id, ULong more_bytes, UInt more_blocks)
{
    Bool is_within = True;
    for (UInt back = 1; wanted; back++) {
        jm_assert(is_within);
        is_within = False;
        for (UInt set = 1; set < N_SETS; set++) {
            Table *t = &saved[set];
            if (!(set & wanted) || back >= t->n)
                continue;
            is_within = True;
            Saved *e = jm_table_at(t, t->n - back);
            if (e->account != id)
                continue;
            const Saved old = *e;
            *e = *(const Saved *)jm_table_at(t, t->n - 1);
            jm_table_drop_last(t);
            if (set & ~wanted)
                save(id, set & ~wanted, old.bytes, old.blocks);
            save(id, set & wanted, old.bytes + more_bytes, old.blocks + more_blocks);
            wanted &= ~set;
        }
    }
}

void jm_ledger_move(AccountId from_id, AccountId to_id, ULong bytes, ULong born)
{
    Account *from = at(from_id);
    Account *to = at(to_id);
    jm_assert(from->side == to->side);
    save_for_peaks(from_id, from);
    save_for_peaks(to_id, to);
    const ULong cached = (is_cache(to) ? bytes : 0) - (is_cache(from) ? bytes : 0);
    Totals change = {{0, 0}, 0, {0, 0}};
    if (cached)
        change.cached[to->side] = cached;
    totals.cached[SIDE_HOST] += change.cached[SIDE_HOST];
    totals.cached[SIDE_DEVICE] += change.cached[SIDE_DEVICE];
    UInt corrected = 0;
    for (UInt i = 0; i < n_kept; i++) {
        PeakId p = kept[i];
        const Bool is_over = closed >> p & 1; // else no values are saved
        if (is_over && born > peaks[p].closed_at)
            continue;
        corrected |= (UInt)is_over << p;
        peaks[p].cached_bytes += cached_of(p, &change);
        peaks[p].grown = True; // write it again
        if (!has_device && p == PEAK_TOTAL)
            peaks[PEAK_HOST].grown = True;
    }
    correct(corrected, from_id, -bytes, -1);
    correct(corrected, to_id, bytes, 1);
    change_balance(from, (Balance){-bytes, -1, -bytes, -1, 0});
    change_balance(to, (Balance){bytes, 1, bytes, 1, 0});
    mark_changed(from_id, from);
    mark_changed(to_id, to);
}

ULong jm_ledger_n_changes(void)
{
    return n_changes;
}

ULong jm_ledger_total(Side side)
{
    return totals.side[side];
}

ULong jm_ledger_interval_max(void)
{
    return interval_max;
}

ULong jm_ledger_take_interval_max(void)
{
    ULong max = interval_max;
    interval_max = of_peak(PEAK_TOTAL, &totals);
    return max;
}

AccountKey jm_ledger_key(AccountId id)
{
    const Account *a = at(id);
    return (AccountKey){a->node, a->kind, a->owner};
}

Bool jm_ledger_is(AccountId id, UInt node, Kind kind)
{
    const Account *a = at(id);
    return a->node == node && a->kind == kind;
}

OwnerId jm_ledger_owner(AccountId id)
{
    return at(id)->owner;
}

Balance jm_ledger_balance(AccountId id)
{
    return balance_of(at(id));
}

UInt jm_ledger_n_changed(void)
{
    return changed.n - 1;
}

AccountId jm_ledger_changed(UInt i)
{
    return *(AccountId *)jm_table_at(&changed, i + 1);
}

void jm_ledger_clear_changed(void)
{
    for (UInt i = 0; i < jm_ledger_n_changed(); i++)
        at(jm_ledger_changed(i))->is_changed = False;
    changed.n = 1;
}

Bool jm_ledger_peak_is_news(PeakId p)
{
    return peaks[p].grown;
}

void jm_ledger_peak_told(PeakId p)
{
    peaks[p].grown = False;
}

Bool jm_ledger_peak_is_now(PeakId p)
{
    return peaks[kept_as(p)].rising;
}

void jm_ledger_peak(PeakId p, ULong *time, ULong *host_bytes, ULong *device_bytes)
{
    const Peak *peak = &peaks[kept_as(p)];
    *time = peak->time;
    *host_bytes = peak->side_bytes[SIDE_HOST];
    *device_bytes = peak->side_bytes[SIDE_DEVICE];
}

void jm_ledger_each_differing(PeakId p, UseDiffering use, void *context)
{
    for (UInt set = 1; set < N_SETS; set++) {
        for (UInt i = 1; (set >> kept_as(p) & 1) && i < saved[set].n; i++) {
            const Saved *e = jm_table_at(&saved[set], i);
            use(context, e->account, e->bytes, e->blocks);
        }
    }
}

void jm_ledger_mark_all_changed(void)
{
    for (AccountId id = 1; id < accounts.n; id++)
        mark_changed(id, at(id));
    for (PeakId p = 0; p < N_PEAKS; p++)
        peaks[p].grown = peaks[kept_as(p)].max_bytes > 0 && (p != PEAK_ALLOCATED || has_pages);
}
