// SPDX-License-Identifier: GPL-2.0-or-later
//
// Slow paths of the checked reads. The inline checks of client_memory.h hit a cache of readable segments; a miss asks
// the core here and refills the cache.

#include "base/client_memory.h"
#include "base/kernel.h"
#include "base/libc.h"
#include "host/host.h"

#include <asm/unistd.h>
#include <fcntl.h>
#include <sys/uio.h>

ReadableSegment jm_readable[JM_N_READABLE];
ULong jm_n_forgotten;

void jm_forget_readable(void)
{
    jm_n_forgotten++;
    memset(jm_readable, 0, sizeof jm_readable);
}

Bool jm_is_newly_readable(Addr address, SizeT bytes)
{
    if (address + bytes < address || !address || !host_is_readable(address, bytes))
        return False;
    Mapping mapping;
    if (host_mapping_at(address, &mapping))
        jm_readable[address >> 20 & (JM_N_READABLE - 1)] = (ReadableSegment){mapping.start, mapping.end};
    return True;
}

Bool jm_read_bytes(Addr address, void *to, SizeT bytes)
{
    if (jm_reads_copies)
        return jm_read_copied(address, to, bytes);
    if (!jm_is_readable(address, bytes))
        return False;
    memcpy(to, (void *)address, bytes);
    return True;
}

Bool jm_read_string(Addr address, HChar *to, SizeT size)
{
    SizeT n = 0;
    to[0] = 0;
    while (n + 1 < size) {
        // Readability is a property of whole pages: check once per page.
        Addr at = address + n;
        SizeT piece = HOST_PAGE_DOWN(at) + HOST_PAGE_BYTES - at;
        if (!at || !host_is_readable(at, 1))
            return False;
        for (SizeT i = 0; i < piece && n + 1 < size; i++, n++) {
            to[n] = ((const HChar *)at)[i];
            if (!to[n])
                return True;
        }
    }
    to[n] = 0;
    return True;
}

#define COPY_BYTES 4096 // divides every size of pages
#define N_COPIES   256

typedef struct {
    Addr page;
    UInt walk; // copies of an earlier one are old
    UChar bytes[COPY_BYTES];
} Copy;

Bool jm_reads_copies;
static Copy copies[N_COPIES];
static UInt walk;
static Int process; // whose memory is copied

Bool jm_read_copies(Bool is_wanted)
{
    const Bool before = jm_reads_copies;
    if (is_wanted && !before) {
        walk++;
        process = jm_process_id();
    }
    jm_reads_copies = is_wanted;
    return before;
}

static const UChar *copy_of(Addr page)
{
    Copy *c = &copies[page / COPY_BYTES % N_COPIES];
    if (c->page == page && c->walk == walk)
        return c->bytes;
    const struct iovec to = {c->bytes, COPY_BYTES}, from = {(void *)page, COPY_BYTES};
    c->walk = 0;
    if (!page || jm_kernel_call6(__NR_process_vm_readv, process, (UWord)&to, 1, (UWord)&from, 1, 0) != COPY_BYTES)
        return NULL;
    c->page = page;
    c->walk = walk;
    return c->bytes;
}

Bool jm_read_copied(Addr address, void *to, SizeT bytes)
{
    const SizeT offset = address % COPY_BYTES, here = bytes <= COPY_BYTES - offset ? bytes : COPY_BYTES - offset;
    const UChar *copy = copy_of(address - offset);
    if (!copy || (here < bytes && !jm_read_copied(address + here, (UChar *)to + here, bytes - here)))
        return False;
    if (here < bytes) // the other may have taken its place
        copy = copy_of(address - offset);
    if (copy)
        memcpy(to, copy + offset, here);
    return copy != NULL;
}

// Static, since memory may be short; one reader at a time.
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
    const ULong exclusive = entry >> BIT_EXCLUSIVE & 1, file = entry >> BIT_FILE & 1,
                swapped = entry >> BIT_SWAPPED & 1, present = entry >> BIT_PRESENT & 1;
    switch (sort) {
    case PAGE_SWAPPED:
        return swapped;
    case PAGE_PRESENT:
        return present;
    case PAGE_CERTAIN:
        return present & (exclusive | file);
    default: // PAGE_MODIFIED
        return swapped | (present & !file);
    }
}

Bool jm_pagemap_measure(Int pagemap, Addr start, Addr end, PageSort sort, ULong *bytes)
{
    *bytes = 0;
    if (pagemap < 0)
        return False;
    Addr page = start / HOST_PAGE_BYTES, last = (end + HOST_PAGE_BYTES - 1) / HOST_PAGE_BYTES;
    while (page < last) {
        Addr wanted = jm_smaller(last - page, sizeof entries / sizeof *entries);
        Int got = jm_read_at(pagemap, entries, wanted * sizeof *entries, page * sizeof *entries);
        if (got < (Int)sizeof *entries)
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
