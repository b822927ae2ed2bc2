// SPDX-License-Identifier: GPL-2.0-or-later
//
// The recorder's own memory for --stats=yes: modules print their rows here, and the sum follows; see stats.h.

#include "base/stats.h"
#include "base/text.h"
#include "host/host.h"

static SizeT total;

void jm_stats_row(const HChar *centre, const HChar *what, ULong n, SizeT bytes)
{
    if (bytes == 0)
        return;
    total += bytes;
    HChar row[256];
    jm_format(row, sizeof row, " jmassif: %'14lu bytes in %-18s %'12llu %s\n", bytes, centre, n, what);
    host_print(HOST_STATISTICS, row);
}

void jm_stats_table(const HChar *what, const Table *t)
{
    jm_stats_row(t->name, what, t->n - 1, t->n_chunks * ((SizeT)JM_CHUNK * t->record_bytes + sizeof *t->chunks));
}

void jm_stats_index(const Index *x)
{
    if (x->slots)
        jm_stats_row(x->name, "entries of an index", x->used, ((SizeT)x->mask + 1) * sizeof *x->slots);
}

void jm_stats_array(const HChar *centre, const HChar *what, const Array *a, SizeT each)
{
    if (a)
        jm_stats_row(centre, what, jm_array_n(a), jm_array_n(a) * each);
}

void jm_stats_print(const TellStats *tellers)
{
    total = 0;
    for (; *tellers; tellers++)
        (*tellers)();
    HChar row[80];
    jm_format(row, sizeof row, " jmassif: %'14lu bytes in all\n", total);
    host_print(HOST_STATISTICS, row);
}
