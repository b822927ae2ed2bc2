// SPDX-License-Identifier: GPL-2.0-or-later
//
// Regions: named spans of a thread's time, set by the program (jmassif.h, jmassif.region() in Python, NVTX). They nest
// as the program likes, also not at all. A name that comes often is told more and more seldom, and summed, so that a
// long run with a region a step does not fill the disk.

#ifndef JM_REGION_H
#define JM_REGION_H

#include "base/compat.h"

// A name of regions; 0 is none: the program has used too many names. Regions of it are counted, not recorded.
typedef UInt RegionName;

RegionName jm_region_name(const HChar *text);
Bool jm_region_is_name(UWord id);

// Sets a mark, without a snapshot.
void jm_region_mark(RegionName name);

// `tag` says which of the thread's open regions an end without a name means; 0: none does.
void jm_region_begin(ThreadId tid, RegionName name, ULong tag);

// Ends the thread's innermost open region of that name, or with that tag. One that was never begun is passed over.
void jm_region_end_named(ThreadId tid, RegionName name);
void jm_region_end_tagged(ThreadId tid, ULong tag);

// How many of the thread's open regions have the tag.
UInt jm_region_depth(ThreadId tid, ULong tag);

// Writes the sums of names of which not every region has been told.
void jm_region_write_sums(void);

void jm_region_stats(void); // tells what it keeps (stats.h)

#endif
