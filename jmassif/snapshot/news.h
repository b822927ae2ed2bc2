// SPDX-License-Identifier: GPL-2.0-or-later
//
// Snapshots beyond the cadence, where the program begins something of its own.
//
// Snapshots are as far apart as the run is long, and a script that imports for half a minute and then loops for a
// second would have three of its loop. So where the program's own memory comes from a new place, the distances begin
// anew, as long as what that adds to the trace is a small share of it.

#ifndef JM_NEWS_H
#define JM_NEWS_H

#include "base/compat.h"

// Whether one is due. Cheap: it is asked whenever the clock has been read. `now` is in milliseconds.
Bool jm_news_is_due(ULong now);

// One was taken, and has added so many bytes to the trace.
void jm_news_told(ULong now, ULong bytes);

void jm_news_after_fork_in_child(void);

#endif
