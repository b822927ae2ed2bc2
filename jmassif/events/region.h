// SPDX-License-Identifier: GPL-2.0-or-later
//
// Regions: named spans of a thread's time, set by the program (jmassif.h, jmassif.region() in Python, NVTX). They may
// nest or overlap. The more often a name occurs, the fewer of its regions are recorded; the others are summed, so that
// a long run with a region per step does not fill the disk.

#pragma once

#include "host/types.h"

// A region's name; 0 if the program has used too many names. Regions with name 0 are counted, not recorded.
typedef UInt RegionName;

RegionName jm_region_name(const HChar *text);
Bool jm_region_is_name(UWord id);

// Sets a mark, without a snapshot.
void jm_region_mark(RegionName name);

// `tag` identifies a region that ends without a name; 0: it only ends by name.
void jm_region_begin(ThreadId tid, RegionName name, ULong tag);

// Ends the thread's innermost open region with that name, or that tag. Ignored if there is none.
void jm_region_end_named(ThreadId tid, RegionName name);
void jm_region_end_tagged(ThreadId tid, ULong tag);

// Number of the thread's open regions with the tag.
UInt jm_region_depth(ThreadId tid, ULong tag);

// Writes the sums of names with regions that were not recorded.
void jm_region_write_sums(void);
