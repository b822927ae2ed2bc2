// SPDX-License-Identifier: GPL-2.0-or-later
//
// Schedules extra snapshots; see news.h. Their distance grows with the time since the last new site, and their bytes
// are limited to a share of the trace.

#include "events/news.h"
#include "base/options.h"
#include "ledger/account.h"
#include "ledger/ledger.h"
#include "trace/trace_file.h"

// A snapshot is due when the time since the last new allocation site has grown by 1/GROWTH_DIVISOR.
#define GROWTH_DIVISOR 8
// Extra snapshots may take 1/SHARE of the trace's bytes. A snapshot's size is estimated from its accounts.
#define SHARE           50
#define BYTES           400
#define BYTES_A_ACCOUNT 24

static UInt n_places; // allocation sites seen so far
static ULong since;
static ULong next;
static ULong spent_bytes;

static ULong later(ULong now)
{
    const ULong step = (now - since) / GROWTH_DIVISOR, least = jm_options.interval_ms;
    return now + (step > least ? step : least);
}

Bool jm_news_is_due(ULong now)
{
    UInt n = jm_account_n_own();
    if (n != n_places) {
        n_places = n;
        since = now;
        next = later(now);
        return False;
    }
    if (!n || now < next || !jm_ledger_n_changed())
        return False;
    ULong added = BYTES + BYTES_A_ACCOUNT * jm_ledger_n_changed();
    return (spent_bytes + added) * SHARE <= jm_trace_bytes();
}

void jm_news_told(ULong now, ULong bytes)
{
    spent_bytes += bytes;
    next = later(now);
}

void jm_news_after_fork_in_child(void)
{
    spent_bytes = 0;
}
