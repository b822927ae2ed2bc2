// SPDX-License-Identifier: GPL-2.0-or-later
//
// What the kernel says is in memory of the process: /proc/self/smaps by mapping, /proc/self/pagemap by page. The kernel
// joins neighbouring mappings that look alike, so one of its own may be several of the program's; only the pages tell
// then whose they are.

#ifndef JM_PAGES_SMAPS_H
#define JM_PAGES_SMAPS_H

#include "base/compat.h"

// A mapping, as the kernel has it; in bytes.
typedef struct {
    Addr start;
    Addr end;
    ULong resident; // Rss, and pages in huge pages of their own file system, which Rss leaves out
    ULong shared;   // Pss: likewise, by how many have the page
    ULong swapped;
    HChar path[32]; // the first characters of its name, enough to recognise a device; "" without one
} Vma;

// Whether the system tells what is resident.
Bool jm_smaps_works(void);

// Calls `use` with each mapping of a process in order of address; pid 0 is this one. False: not all of them could be
// read.
Bool jm_smaps_each(Int pid, void (*use)(const Vma *vma));

// What an entry of /proc/self/pagemap may say of a page. The page of zeroes, which is mapped where memory is read that
// was never written to, is present as well, though it is nobody's and no Rss has it; what is certain is not that one.
typedef enum { PAGE_SWAPPED, PAGE_PRESENT, PAGE_CERTAIN } PageSort;

Int jm_pagemap_open(void); // a descriptor for VG_(close); negative: there is none

// How many bytes of a range are in pages of that sort. The range need not begin and end with a page. False: it does
// not say.
Bool jm_pagemap_measure(Int pagemap, Addr start, Addr end, PageSort sort, ULong *bytes);

#endif
