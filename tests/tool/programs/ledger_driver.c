// SPDX-License-Identifier: GPL-2.0-or-later
//
// The recorder's ledger without the recorder: reads events from standard input, a line each, and tells the ledger. What
// the other modules give to it stands below. "dump" prints all that a trace would say.

#include <stdio.h>
#include <string.h>

#include "ledger/ledger.h"
#include "base/options.h"
#include "host_of_libc.h"

Options jm_options;

ULong jm_clock_traffic_bytes;
ULong jm_clock_cached(void)
{
    return 0;
}

static void print_differing(void *context, AccountId id, ULong bytes, ULong blocks)
{
    printf("differing %d %u %llu %llu\n", *(PeakId *)context, id, bytes, blocks);
}

static void dump(Bool has_pages, AccountId last)
{
    for (AccountId id = 1; id <= last; id++) {
        Balance b = jm_ledger_balance(id);
        printf("account %u %llu %llu %llu %llu %llu\n", id, b.live_bytes, b.live_blocks, b.total_bytes, b.total_blocks,
               b.temporaries);
    }
    for (UInt i = 0; i < jm_ledger_n_changed(); i++)
        printf("changed %u\n", jm_ledger_changed(i));
    jm_ledger_clear_changed();
    printf("totals %llu %llu\n", jm_ledger_total(SIDE_HOST), jm_ledger_total(SIDE_DEVICE));
    for (PeakId p = 0; p < N_PEAKS; p++) {
        if (p == PEAK_ALLOCATED && !has_pages)
            continue;
        ULong time, host_bytes, device_bytes;
        jm_ledger_peak(p, &time, &host_bytes, &device_bytes);
        printf("peak %d %llu %llu %d\n", p, host_bytes, device_bytes, jm_ledger_peak_is_news(p));
        jm_ledger_each_differing(p, print_differing, &p);
        jm_ledger_peak_told(p);
    }
    printf("end\n");
}

int main(void)
{
    static ULong born[1 << 16]; // by block
    Bool has_pages = False;
    AccountId last = 0;
    char event[16];
    while (scanf("%15s", event) == 1) {
        ULong n[4] = {0, 0, 0, 0};
        for (int i = 0; i < 4 && scanf("%lld", (long long *)&n[i]) == 1; i++)
            ;
        switch (event[0]) {
        case 'p':
            jm_ledger_keep_allocated_peak();
            has_pages = True;
            break;
        case 'o': // account, kind, owner
            last = jm_ledger_open(0, n[1], n[2]);
            break;
        case '+': // account, bytes, block
            jm_ledger_credit(n[0], n[1]);
            born[n[2]] = jm_ledger_n_changes();
            break;
        case '-':
            jm_ledger_debit(n[0], n[1]);
            break;
        case 'r':
            jm_ledger_resize(n[0], n[1], n[2], n[3]);
            break;
        case 't':
            jm_ledger_transfer(n[0], n[1], n[2], n[3]);
            break;
        case 'c':
            jm_ledger_carve(n[0], n[1], n[2], n[3]);
            break;
        case 'm': // from, to, bytes, block
            jm_ledger_move(n[0], n[1], n[2], born[n[3]]);
            break;
        case 'a':
            jm_ledger_adjust(n[0], n[1]);
            break;
        case 'x':
            jm_ledger_count_temporary(n[0]);
            break;
        case 'd':
            dump(has_pages, last);
        }
    }
    return 0;
}
