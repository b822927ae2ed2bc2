// SPDX-License-Identifier: GPL-2.0-or-later
//
// Extra snapshots where the program starts to allocate at new sites.
//
// The cadence's distances grow with the run: a script that imports for half a minute and then loops for a second would
// have three snapshots of its loop. So a new allocation site of the program's own memory restarts the distances, as
// long as the extra snapshots are a small share of the trace.

#ifndef JM_NEWS_H
#define JM_NEWS_H

#include "host/types.h"

// True if an extra snapshot is due. Cheap: called at each reading of the clock. `now` is in milliseconds.
Bool jm_news_is_due(ULong now);

// Call after an extra snapshot, with the bytes that it added to the trace.
void jm_news_told(ULong now, ULong bytes);

void jm_news_after_fork_in_child(void);

#endif
