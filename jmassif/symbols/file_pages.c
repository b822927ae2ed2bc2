// SPDX-License-Identifier: GPL-2.0-or-later
//
// Ranges that the recorder has read in mapped files, joined by their start, and released by madvise; see looked_at.h.

#include "symbols/file_pages.h"
#include "base/kernel.h"
#include "host/host.h"

#include <asm/unistd.h>
#include <fcntl.h>

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
        jm_looked_at_let_go();
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
        jm_looked_at_let_go();
    ranges[n_ranges].start = start;
    ranges[n_ranges].end = end;
    ranges[n_ranges].dev = mapping.device;
    ranges[n_ranges].ino = mapping.inode;
    n_ranges++;
}

// Bits of an entry of /proc/self/pagemap (proc(5)).
#define BIT_FILE    61
#define BIT_SWAPPED 62
#define BIT_PRESENT 63

// Return whether all pages in [start, end) are as in the file. Releasing a modified one, as a debugger writes, would
// lose it.
static Bool is_as_in_file(Int pagemap, Addr start, Addr end)
{
    static ULong entries[512];
    for (Addr at = start; at < end;) {
        UWord n = (end - at) / HOST_PAGE_BYTES;
        if (n > sizeof entries / sizeof *entries)
            n = sizeof entries / sizeof *entries;
        Long got = jm_kernel_call(__NR_pread64, pagemap, (UWord)entries, n * sizeof *entries,
                                  at / HOST_PAGE_BYTES * sizeof *entries, 0);
        if (got != (Long)(n * sizeof *entries))
            return False;
        for (UWord i = 0; i < n; i++)
            if (entries[i] >> BIT_SWAPPED & 1 || (entries[i] >> BIT_PRESENT & 1 && !(entries[i] >> BIT_FILE & 1)))
                return False;
        at += n * HOST_PAGE_BYTES;
    }
    return True;
}

void jm_looked_at_let_go(void)
{
    n_looks = 0;
    if (!n_ranges)
        return;
    Int opened = jm_open("/proc/self/pagemap", O_RDONLY, 0);
    for (UInt i = 0; i < n_ranges && !jm_is_error(opened); i++) {
        // Another mapping may have replaced this one.
        Mapping now;
        if (!host_mapping_at(ranges[i].start, &now) || now.as != MAPPED_FILE || !now.is_programs || now.is_writable ||
            now.device != ranges[i].dev || now.inode != ranges[i].ino)
            continue;
        // Keep partial pages at both ends: the program may need the rest of them.
        Addr start = HOST_PAGE_UP(ranges[i].start);
        Addr end = ranges[i].end < now.end ? HOST_PAGE_DOWN(ranges[i].end) : now.end;
        if (start < end && is_as_in_file(opened, start, end))
            jm_kernel_let_go(start, end - start);
    }
    if (!jm_is_error(opened))
        jm_close(opened);
    n_ranges = 0;
}
