// SPDX-License-Identifier: GPL-2.0-or-later
//
// Reads smaps and pagemap; see smaps.h. smaps is text with some twenty lines per mapping, and costs milliseconds;
// pagemap has eight bytes per page of any range. Both use static buffers, since memory may be short.

#include "pages/smaps.h"
#include "base/kernel.h"
#include "base/libc.h"
#include "base/text.h"
#include "host/host.h"

#include <fcntl.h>

// ---- pagemap -------------------------------------------------------------------------------------------------

// Shared: one reader at a time.
static ULong entries[4096];

Int jm_pagemap_open(void)
{
    Int opened = jm_open("/proc/self/pagemap", O_RDONLY, 0);
    return jm_is_error(opened) ? -1 : opened;
}

// The top bits of an entry (proc(5)): mapped exclusively; file or shared memory page; swapped; present.
#define BIT_EXCLUSIVE 56
#define BIT_FILE      61
#define BIT_SWAPPED   62
#define BIT_PRESENT   63

static ULong is_of_sort(ULong entry, PageSort sort)
{
    if (sort == PAGE_SWAPPED)
        return entry >> BIT_SWAPPED & 1;
    ULong certain = sort == PAGE_PRESENT || (entry >> BIT_EXCLUSIVE & 1) || (entry >> BIT_FILE & 1);
    return entry >> BIT_PRESENT & certain;
}

Bool jm_pagemap_measure(Int pagemap, Addr start, Addr end, PageSort sort, ULong *bytes)
{
    *bytes = 0;
    if (pagemap < 0)
        return False;
    Addr page = start / HOST_PAGE_BYTES, last = (end + HOST_PAGE_BYTES - 1) / HOST_PAGE_BYTES;
    if (jm_seek(pagemap, page * sizeof *entries) < 0)
        return False;
    while (page < last) {
        Addr wanted = last - page < sizeof entries / sizeof *entries ? last - page : sizeof entries / sizeof *entries;
        Int got = jm_read(pagemap, entries, wanted * sizeof *entries);
        if (got <= 0)
            return False;
        UInt n = got / sizeof *entries;
        for (UInt i = 0; i < n; i++)
            *bytes += is_of_sort(entries[i], sort) * HOST_PAGE_BYTES;
        if (page == start / HOST_PAGE_BYTES)
            *bytes -= is_of_sort(entries[0], sort) * (start % HOST_PAGE_BYTES);
        page += n;
        if (page == last)
            *bytes -= is_of_sort(entries[n - 1], sort) * (last * HOST_PAGE_BYTES - end);
    }
    return True;
}

// ---- smaps ---------------------------------------------------------------------------------------------------

static inline Int digit(HChar c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static Addr hexadecimal(const HChar **at)
{
    Addr value = 0;
    for (; digit(**at) >= 0; (*at)++)
        value = value * 16 + digit(**at);
    return value;
}

static void read_line(const HChar *line, Vma *vma)
{
    ULong bytes;
    switch (line[0]) {
    case 'R':
        if (jm_text_labelled_bytes(line, "Rss", &bytes))
            vma->resident += bytes;
        break;
    case 'P':
        if (jm_text_labelled_bytes(line, "Pss", &bytes)) {
            vma->shared += bytes;
        } else if (jm_text_labelled_bytes(line, "Private_Hugetlb", &bytes)) {
            vma->resident += bytes;
            vma->shared += bytes;
        }
        break;
    case 'S':
        if (jm_text_labelled_bytes(line, "SwapPss", &bytes)) {
            vma->swapped = bytes;
        } else if (jm_text_labelled_bytes(line, "Shared_Hugetlb", &bytes)) {
            vma->resident += bytes;
            vma->shared += bytes;
        }
        break;
    default:
        break;
    }
}

typedef struct {
    void (*use)(const Vma *vma);
    Vma vma; // the mapping being read; end is 0 before the first
} Smaps;

static void smaps_line(const HChar *line, void *context)
{
    Smaps *smaps = context;
    Vma *vma = &smaps->vma;
    if (digit(line[0]) < 0) {
        read_line(line, vma);
        return;
    }
    if (vma->end)
        smaps->use(vma);
    memset(vma, 0, sizeof *vma);
    vma->start = hexadecimal(&line);
    line++;
    vma->end = hexadecimal(&line);
    const HChar *path = strchr(line, '/');
    jm_text_cut(vma->path, path ? path : "", sizeof vma->path);
}

Bool jm_smaps_each(Int pid, void (*use)(const Vma *vma))
{
    HChar name[32] = "/proc/self/smaps";
    Smaps smaps = {.use = use};
    if (pid)
        jm_format(name, sizeof name, "/proc/%d/smaps", pid);
    if (!jm_text_each_line(name, smaps_line, &smaps))
        return False;
    if (smaps.vma.end)
        use(&smaps.vma);
    return True;
}

// ---- check ---------------------------------------------------------------------------------------------------

static ULong probe_resident;

static void probe(const Vma *vma)
{
    if (vma->start <= (Addr)entries && (Addr)entries < vma->end)
        probe_resident = vma->resident;
}

// `entries` must be listed, and resident. Under an emulator it may not be, or the file may not exist.
Bool jm_smaps_works(void)
{
    return jm_smaps_each(0, probe) && probe_resident;
}
