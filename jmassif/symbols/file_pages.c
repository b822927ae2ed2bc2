// SPDX-License-Identifier: GPL-2.0-or-later
//
// Ranges that the recorder has read in mapped files, joined by their start, and released by madvise; see looked_at.h.

#include "symbols/file_pages.h"
#include "base/kernel.h"

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
    const NSegment *segment = VG_(am_find_nsegment)(start);
    if (!segment || segment->kind != SkFileC)
        return;
    if (n_ranges == N_RANGES)
        jm_looked_at_let_go();
    ranges[n_ranges].start = start;
    ranges[n_ranges].end = end;
    ranges[n_ranges].dev = segment->dev;
    ranges[n_ranges].ino = segment->ino;
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
        UWord n = (end - at) / VKI_PAGE_SIZE;
        if (n > sizeof entries / sizeof *entries)
            n = sizeof entries / sizeof *entries;
        Long got = jm_kernel_call(__NR_pread64, pagemap, (UWord)entries, n * sizeof *entries,
                                  at / VKI_PAGE_SIZE * sizeof *entries, 0);
        if (got != (Long)(n * sizeof *entries))
            return False;
        for (UWord i = 0; i < n; i++)
            if (entries[i] >> BIT_SWAPPED & 1 || (entries[i] >> BIT_PRESENT & 1 && !(entries[i] >> BIT_FILE & 1)))
                return False;
        at += n * VKI_PAGE_SIZE;
    }
    return True;
}

void jm_looked_at_let_go(void)
{
    n_looks = 0;
    if (!n_ranges)
        return;
    SysRes opened = VG_(open)("/proc/self/pagemap", VKI_O_RDONLY, 0);
    for (UInt i = 0; i < n_ranges && !sr_isError(opened); i++) {
        // Another mapping may have replaced this one.
        const NSegment *segment = VG_(am_find_nsegment)(ranges[i].start);
        if (!segment || segment->kind != SkFileC || segment->hasW || segment->dev != ranges[i].dev ||
            segment->ino != ranges[i].ino)
            continue;
        // Keep partial pages at both ends: the program may need the rest of them.
        Addr start = VG_PGROUNDUP(ranges[i].start);
        Addr end = ranges[i].end <= segment->end ? VG_PGROUNDDN(ranges[i].end) : segment->end + 1;
        if (start < end && is_as_in_file((Int)sr_Res(opened), start, end))
            jm_kernel_let_go(start, end - start);
    }
    if (!sr_isError(opened))
        VG_(close)((Int)sr_Res(opened));
    n_ranges = 0;
}
