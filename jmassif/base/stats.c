// SPDX-License-Identifier: GPL-2.0-or-later
//
// The recorder's own memory for --stats=yes: modules print their rows here, and the sum follows; see stats.h.

#include "base/stats.h"

static SizeT total;

void jm_stats_row(const HChar *centre, const HChar *what, ULong n, SizeT bytes)
{
    if (bytes == 0)
        return;
    total += bytes;
    VG_(dmsg)(" jmassif: %'14lu bytes in %-18s %'12llu %s\n", bytes, centre, n, what);
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

void jm_stats_array(const HChar *centre, const HChar *what, const XArray *a, SizeT each)
{
    if (a)
        jm_stats_row(centre, what, VG_(sizeXA)(a), VG_(sizeXA)(a) * each);
}

void jm_stats_print(const TellStats *tellers)
{
    total = 0;
    for (; *tellers; tellers++)
        (*tellers)();
    VG_(dmsg)(" jmassif: %'14lu bytes in all\n", total);
}
