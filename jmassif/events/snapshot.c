// SPDX-License-Identifier: GPL-2.0-or-later
//
// Schedules snapshots and writes the changes since the last one. --max-snapshots is the number of snapshots in each
// tenfold growth of the running time: with the default of 100 a run has 100 from 1 s to 10 s, and 100 more until 100 s.

#include "events/snapshot.h"
#include "base/clock.h"
#include "base/options.h"
#include "events/waiting.h"
#include "ledger/account.h"
#include "ledger/ledger.h"
#include "machine/system.h"
#include "symbols/symbol.h"
#include "trace/trace.h"

// Records of the totals are this much denser than snapshots.
#define TOTALS_PER_SNAPSHOT 10

// A program of a few milliseconds would have no history, so the first events trigger snapshots too, at event numbers
// that grow geometrically up to EARLY_EVENTS.
#define EARLY_EVENTS 1000

static const struct {
    const HChar *name;
    // False for frequent reasons: these snapshots must be cheap.
    Bool sees_pages;
    Bool tells_objects; // False for "time", which may come while a file is being mapped
} reasons[] = {
#define REASON(id, name, sees_pages, tells_objects) {name, sees_pages, tells_objects},
    JM_SNAPSHOT_REASONS(REASON)
#undef REASON
};

static const SnapshotSource *sources;
static UInt n_sources;

static UInt n_snapshots;
static ULong next_snapshot; // in time units
static ULong next_totals;
static ULong n_events;
static ULong next_early_event = 1;
static Bool is_beside;       // the program's threads run meanwhile
static ULong growth_divisor; // a snapshot is due when the time has grown by 1/growth_divisor

void jm_snapshot_write_totals(ULong now)
{
    jm_trace_totals(now, jm_ledger_total(SIDE_HOST), jm_ledger_total(SIDE_DEVICE), jm_ledger_take_interval_max());
}

static ULong later(ULong now, ULong divisor, ULong least)
{
    ULong step = now / divisor;
    return now + (step > least ? step : least);
}

void jm_snapshot_start(const SnapshotSource *all, UInt n)
{
    sources = all;
    n_sources = n;
    jm_system_init();
    // 10^(1/n) - 1 = ln(10)/n for large n; 1/that, with n at least 10, is close to n/2.3.
    growth_divisor = jm_options.max_snapshots * 10 / 23;
    jm_snapshot_take(SNAPSHOT_START);
}

static void take(SnapshotReason reason);

// Most forked children call exec at once and need no trace. Until then, or for this long, their records stay in memory.
#define CHILD_GRACE_MS 500

static ULong grace_end_ms;
static Bool holds_news; // records beyond the first snapshot are in memory

// ---- the tail: recent changes for a program that is killed -------------------------------------------------------

// Snapshots are far apart in a long run, and there are none while a program blocks. So the trace ends in a tail, a
// snapshot of the accounts alone, which the next tail or snapshot overwrites. It is written when the last one is this
// old and something has changed, and before the program blocks.
#define MS_BETWEEN_TAILS 500

// A tail's cost is estimated (100 µs for system calls, 0.3 µs per account): measuring it would add a tenth.
#define TAIL_US         100
#define ACCOUNTS_PER_US 3

// Tails may take 1/share of the time, and unspent time is saved up to a second. Most waits are short, and some programs
// make a thousand a second, so waits of unknown length have a limit too. A long sleep has none, unless the tail would
// take a good part of it.
#define RUNNING_SHARE 128
#define WAITING_SHARE 16
#define SAVED_US      1000000

typedef struct {
    ULong share, paid_us; // time that is already spent, up to here
} Allowance;

static Allowance while_running = {RUNNING_SHARE, 0}, before_waits = {WAITING_SHARE, 0};
static ULong last_told_ms;

static void take_tail(void);

static Bool is_news(void)
{
    return jm_ledger_n_changed() > 0 || holds_news;
}

static ULong tail_us(void)
{
    return TAIL_US + jm_ledger_n_changed() / ACCOUNTS_PER_US;
}

static Bool may_tell(const Allowance *allowance)
{
    return is_news() && allowance->paid_us <= jm_clock_ms() * 1000 + SAVED_US;
}

static void tell_at_end(Allowance *allowance)
{
    ULong now_us = jm_clock_ms() * 1000;
    ULong since_us = allowance->paid_us > now_us ? allowance->paid_us : now_us;
    allowance->paid_us = since_us + tail_us() * allowance->share;
    take_tail();
}

void jm_snapshot_before_syscall(UInt number, const UWord *args)
{
    if (!is_news())
        return;
    if (tail_us() <= LONG_WAIT_MS * 1000 / WAITING_SHARE && jm_waiting_is_certain(number, args))
        take_tail();
    else if (may_tell(&before_waits) && (jm_waiting_is_certain(number, args) || jm_waiting_is_likely(number, args)))
        tell_at_end(&before_waits);
}

static void take_and_tell(SnapshotReason reason)
{
    take(reason);
    holds_news = jm_trace_is_pending() && jm_clock_ms() < grace_end_ms;
    if (!holds_news)
        jm_trace_flush();
}

// ---- extra snapshots at new sites ----------------------------------------------------------------------------

// The cadence's distances grow with the run: a script that imports for half a minute and then loops for a second would
// have three snapshots of its loop. So a new allocation site of the program's own memory restarts the distances, as
// long as the extra snapshots are a small share of the trace.

// A snapshot is due when the time since the last new allocation site has grown by 1/SITES_DIVISOR.
#define SITES_DIVISOR 8
// Extra snapshots may take 1/EXTRA_SHARE of the trace's bytes. A snapshot's size is estimated from its accounts.
#define EXTRA_SHARE       50
#define SNAPSHOT_BYTES    400
#define BYTES_PER_ACCOUNT 24

static UInt n_sites;    // seen so far
static ULong last_site; // time of the last new one
static ULong next_extra;
static ULong extra_bytes;

static ULong next_at_sites(ULong now)
{
    return later(now - last_site, SITES_DIVISOR, jm_options.interval_ms) + last_site;
}

static Bool is_due_at_sites(ULong now)
{
    UInt n = jm_account_n_own();
    if (n != n_sites) {
        n_sites = n;
        last_site = now;
        next_extra = next_at_sites(now);
        return False;
    }
    if (!n || now < next_extra || !jm_ledger_n_changed())
        return False;
    ULong added = SNAPSHOT_BYTES + BYTES_PER_ACCOUNT * jm_ledger_n_changed();
    return (extra_bytes + added) * EXTRA_SHARE <= jm_trace_bytes();
}

// ---- the cadence ---------------------------------------------------------------------------------------------

// A large block makes a peak at once, with pages as they were last sampled. So they are sampled whenever all memory has
// grown by a quarter, whatever that costs: a few dozen times in the largest run.
static ULong grown_at = 16 << 20;

static ULong total(void)
{
    return jm_ledger_total(SIDE_HOST) + jm_ledger_total(SIDE_DEVICE);
}

static Bool memory_has_grown(void)
{
    return jm_options.pages && total() >= grown_at;
}

static void poll(Bool is_due)
{
    ULong now = jm_clock_now();
    ULong now_ms = jm_options.time_unit == TIME_MS ? now : jm_clock_ms();
    if (jm_system_is_short(now_ms)) {
        jm_snapshot_take(SNAPSHOT_LOW_MEMORY);
    } else if (is_due || now >= next_snapshot || memory_has_grown()) {
        take_and_tell(SNAPSHOT_TIME);
    } else if (jm_options.time_unit == TIME_MS && !jm_trace_is_pending() && is_due_at_sites(now)) {
        const ULong before = jm_trace_bytes();
        take(SNAPSHOT_TIME);
        extra_bytes += jm_trace_bytes() - before;
        next_extra = next_at_sites(now);
        jm_trace_flush();
    } else if (now >= next_totals) {
        jm_snapshot_write_totals(now);
        next_totals = later(now, growth_divisor * TOTALS_PER_SNAPSHOT, 1);
    } else if (now_ms - last_told_ms >= MS_BETWEEN_TAILS && may_tell(&while_running)) {
        tell_at_end(&while_running);
    }
}

// Reading the clock can cost a system call: after LOOKS_EARLY events it is read once per EVENTS_PER_LOOK.
#define LOOKS_EARLY     1000
#define EVENTS_PER_LOOK 64

void jm_snapshot_event(void)
{
    const Bool is_early = ++n_events == next_early_event && n_events <= EARLY_EVENTS;
    if (is_early)
        next_early_event += 1 + n_events / 10;
    if (jm_options.time_unit == TIME_BYTES || n_events <= LOOKS_EARLY || n_events % EVENTS_PER_LOOK == 0)
        poll(is_early);
}

void jm_snapshot_tick(ULong blocks_dispatched)
{
    // Poll also after about a millisecond of translated code: the core may have been busy in between, for example
    // reading symbols.
    static ULong last;
    static UInt n_ticks;
    if (++n_ticks > LOOKS_EARLY && blocks_dispatched - last < 20000 && n_ticks % EVENTS_PER_LOOK != 0)
        return;
    last = blocks_dispatched;
    poll(False);
}

void jm_snapshot_look(void)
{
    poll(False);
}

void jm_snapshot_beside(void)
{
    is_beside = True;
    poll(False);
    if (jm_clock_ms() - last_told_ms >= MS_BETWEEN_TAILS / 2 && may_tell(&before_waits))
        tell_at_end(&before_waits);
    is_beside = False;
}

static const HChar *const peak_names[N_PEAKS] = {"total", "host", "device", "allocated"};

static void write_differing(void *context, AccountId id, ULong bytes, ULong blocks)
{
    Balance now = jm_ledger_balance(id);
    if (bytes != now.live_bytes || blocks != now.live_blocks)
        jm_trace_at_peak(id, bytes, blocks);
}

static void write_peak(PeakId p)
{
    ULong time, host_bytes, device_bytes;
    jm_ledger_peak(p, &time, &host_bytes, &device_bytes);
    jm_trace_peak(peak_names[p], time, host_bytes, device_bytes);
    jm_ledger_each_differing(p, write_differing, NULL);
}

static void write_changed_balances(void)
{
    for (UInt i = 0; i < jm_ledger_n_changed(); i++) {
        AccountId account = jm_ledger_changed(i);
        Balance b = jm_ledger_balance(account);
        jm_trace_balance(account, b.live_bytes, b.live_blocks, b.total_bytes, b.total_blocks, b.temporaries);
    }
}

const HChar *jm_snapshot_reason_name(SnapshotReason reason)
{
    return reasons[reason].name;
}

// A script has few marks, or one in each step of a loop, of which the first ones may be dear.
#define MARKS_WITH_PAGES 16

static void take(SnapshotReason reason)
{
    static UInt n_marks;
    const Bool sees_pages = reasons[reason].sees_pages || (reason == SNAPSHOT_MARK && n_marks++ < MARKS_WITH_PAGES) ||
                            (reason != SNAPSHOT_FORK && memory_has_grown());
    const SnapshotSource *source, *first = sources, *const end = sources + n_sources;
    while (is_beside && first < end && first->reads_program)
        first++;
    for (source = first; source < end; source++)
        if (source->before)
            source->before(sees_pages);
    if (sees_pages && total() >= grown_at)
        grown_at = total() + total() / 4;
    ULong now = jm_clock_now();
    jm_symbol_tell_objects(reasons[reason].tells_objects && !is_beside);
    jm_snapshot_write_totals(now);
    jm_system_write(now);
    for (source = first; source < end; source++)
        if (source->tell)
            source->tell();
    UInt id = ++n_snapshots;
    jm_trace_snapshot_begin(id, now, reasons[reason].name, jm_ledger_total(SIDE_HOST), jm_ledger_total(SIDE_DEVICE));
    write_changed_balances();
    jm_ledger_clear_changed();
    for (source = first; source < end; source++)
        if (source->inside)
            source->inside();
    for (PeakId p = 0; p < N_PEAKS; p++) {
        if (jm_ledger_peak_is_news(p))
            write_peak(p);
        jm_ledger_peak_told(p);
    }
    jm_trace_snapshot_end(id);
    const ULong least = jm_options.time_unit == TIME_MS ? jm_options.interval_ms : 1;
    next_snapshot = later(now, growth_divisor, least);
    next_totals =
        later(now, growth_divisor * TOTALS_PER_SNAPSHOT, (least + TOTALS_PER_SNAPSHOT - 1) / TOTALS_PER_SNAPSHOT);
    last_told_ms = jm_clock_ms();
}

// Writes a tail. Changes stay marked, since the next snapshot writes them again.
static void take_tail(void)
{
    last_told_ms = jm_clock_ms();
    holds_news = False;
    if (!jm_trace_begin_tail())
        return;
    ULong now = jm_clock_now();
    ULong host_bytes = jm_ledger_total(SIDE_HOST), device_bytes = jm_ledger_total(SIDE_DEVICE);
    jm_trace_totals(now, host_bytes, device_bytes, jm_ledger_interval_max());
    jm_trace_snapshot_begin(n_snapshots + 1, now, reasons[SNAPSHOT_TIME].name, host_bytes, device_bytes);
    write_changed_balances();
    for (PeakId p = 0; p < N_PEAKS; p++)
        if (jm_ledger_peak_is_news(p))
            write_peak(p);
    jm_trace_snapshot_end(n_snapshots + 1);
    jm_trace_end_tail();
}

void jm_snapshot_take(SnapshotReason reason)
{
    take(reason);
    jm_trace_flush();
}

void jm_snapshot_before_exec(void)
{
    if (!jm_trace_is_pending())
        jm_snapshot_take(SNAPSHOT_EXEC);
}

// A child starts with its parent's memory. Without a current snapshot of the parent, that memory would count as the
// child's own, and be missing in their sum while the parent waits. Some programs fork thousands of children that exec:
// after so many forks, snapshots follow the cadence again.
#define FORKS_TOLD 16

void jm_snapshot_before_fork(void)
{
    static UInt n_forks;
    if (n_forks++ < FORKS_TOLD)
        take_and_tell(SNAPSHOT_BEFORE_FORK);
    else
        poll(False);
}

void jm_snapshot_after_fork_in_child(void)
{
    n_snapshots = 0;
    jm_system_after_fork_in_child();
    extra_bytes = 0;
    jm_ledger_mark_all_changed();
    for (UInt i = 0; i < n_sources; i++)
        if (sources[i].after_fork)
            sources[i].after_fork();
    grace_end_ms = jm_clock_ms() + CHILD_GRACE_MS;
    holds_news = False;
    jm_ledger_restart_peaks(); // the parent's peaks are not the child's
    take(SNAPSHOT_FORK);
}
