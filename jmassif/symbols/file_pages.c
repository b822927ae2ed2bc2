// SPDX-License-Identifier: GPL-2.0-or-later
//
// Ranges that the recorder has read in mapped files, joined by their start, and released by madvise; see file_pages.h.

#include "symbols/file_pages.h"
#include "base/client_memory.h"
#include "base/kernel.h"
#include "host/host.h"

// The kernel maps up to 64 KiB of a file around each newly touched page. At this rate unreleased pages stay a few
// megabytes, and reading released pages again has no measurable cost.
#define LOOKS_UNTIL_LET_GO 256

#define N_RANGES 32
static struct {
    Addr start, end;
    ULong dev, ino; // of the mapped file
} ranges[N_RANGES];
static UInt n_ranges, n_looks;

void jm_looked_at(Addr start, Addr end)
{
    if (++n_looks >= LOOKS_UNTIL_LET_GO)
        jm_looked_at_let_go(True);
    for (UInt i = 0; i < n_ranges; i++)
        if (ranges[i].start == start) {
            if (end > ranges[i].end)
                ranges[i].end = end;
            return;
        }
    Mapping mapping;
    if (!host_mapping_at(start, &mapping) || mapping.as != MAPPED_FILE || !mapping.is_programs)
        return;
    if (n_ranges == N_RANGES)
        jm_looked_at_let_go(True);
    ranges[n_ranges].start = start;
    ranges[n_ranges].end = end;
    ranges[n_ranges].dev = mapping.device;
    ranges[n_ranges].ino = mapping.inode;
    n_ranges++;
}

void jm_looked_at_let_go(Bool in_full)
{
    n_looks = 0;
    if (!n_ranges)
        return;
    Int pagemap = jm_pagemap_open();
    for (UInt i = 0; i < n_ranges && pagemap >= 0; i++) {
        // Another mapping may have replaced this one.
        Mapping now;
        if (!host_mapping_at(ranges[i].start, &now) || now.as != MAPPED_FILE || !now.is_programs || now.is_writable ||
            now.device != ranges[i].dev || now.inode != ranges[i].ino)
            continue;
        // Keep partial pages at both ends: the program may need the rest of them.
        Addr start = HOST_PAGE_UP(ranges[i].start);
        Addr end = ranges[i].end < now.end ? HOST_PAGE_DOWN(ranges[i].end) : now.end;
        // Releasing a modified page, as a debugger writes, would lose it.
        ULong modified;
        if (start < end && jm_pagemap_measure(pagemap, start, end, PAGE_MODIFIED, &modified) && !modified)
            jm_kernel_let_go(start, end - start);
    }
    jm_close(pagemap);
    n_ranges = 0;
}
