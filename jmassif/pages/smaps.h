// SPDX-License-Identifier: GPL-2.0-or-later
//
// Reads a process's resident memory from /proc/PID/smaps. The kernel merges similar neighbours, so one of its mappings
// may contain several of the program's; then only pagemap (client_memory.h) shows which of them has the pages.

#pragma once

#include "host/types.h"

// A mapping of the kernel; sizes in bytes.
typedef struct {
    Addr start;
    Addr end;
    ULong resident; // Rss plus hugetlbfs pages, which Rss leaves out
    ULong shared;   // Pss plus hugetlbfs pages, in full even if shared
    ULong swapped;
    ULong anonymous; // part of `resident` that is of no file: of a private file mapping, its copied pages
    HChar path[32];  // start of its name, enough to recognise a device; "" if it has no name
} Vma;

// True if the system reports resident pages.
Bool jm_smaps_works(void);

// Calls `use` with each mapping of a process in order of address; pid 0 is this process. False if not all of them could
// be read.
Bool jm_smaps_each(Int pid, void (*use)(const Vma *vma));
