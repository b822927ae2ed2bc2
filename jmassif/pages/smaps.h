// SPDX-License-Identifier: GPL-2.0-or-later
//
// Reads the process's resident memory from the kernel: /proc/self/smaps by mapping, /proc/self/pagemap by page. The
// kernel merges similar neighbours, so one of its mappings may contain several of the program's; then only pagemap
// shows which of them has the pages. Sizes are in bytes.

#ifndef JM_PAGES_SMAPS_H
#define JM_PAGES_SMAPS_H

#include "host/types.h"

// A mapping of the kernel; sizes in bytes.
typedef struct {
    Addr start;
    Addr end;
    ULong resident; // Rss plus hugetlbfs pages, which Rss leaves out
    ULong shared;   // Pss plus hugetlbfs pages, in full even if shared
    ULong swapped;
    HChar path[32]; // start of its name, enough to recognise a device; "" if it has no name
} Vma;

// True if the system reports resident pages.
Bool jm_smaps_works(void);

// Calls `use` with each mapping of a process in order of address; pid 0 is this process. False if not all of them could
// be read.
Bool jm_smaps_each(Int pid, void (*use)(const Vma *vma));

// State of a page in /proc/self/pagemap. The zero page, mapped where memory is read before it is written, is PRESENT as
// well, though Rss does not count it. CERTAIN excludes it, and other anonymous pages shared with a child or parent.
typedef enum { PAGE_SWAPPED, PAGE_PRESENT, PAGE_CERTAIN } PageSort;

Int jm_pagemap_open(void); // returns a descriptor for jm_close; negative on failure

// Bytes of a range in pages of that sort. The range need not be page aligned. False if pagemap cannot be read.
Bool jm_pagemap_measure(Int pagemap, Addr start, Addr end, PageSort sort, ULong *bytes);

#endif
