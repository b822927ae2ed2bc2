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
    jm_format(row, sizeof row, " jmassif: %lu bytes in %s: %llu %s\n", bytes, centre, n, what);
    host_print(HOST_STATISTICS, row);
}
