// SPDX-License-Identifier: GPL-2.0-or-later
//
// Rows of a host's tables for --stats=yes; see stats.h.

#include "base/stats.h"
#include "base/text.h"
#include "host/host.h"

void jm_stats_row(const HChar *centre, const HChar *what, ULong n, SizeT bytes)
{
    if (bytes == 0)
        return;
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
