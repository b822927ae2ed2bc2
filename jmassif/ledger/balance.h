// SPDX-License-Identifier: GPL-2.0-or-later
//
// What the ledger's words mean: an account's number, its balance, the peaks.

#ifndef JM_BALANCE_H
#define JM_BALANCE_H

#include "base/compat.h"
#include "base/kind.h"

typedef UInt AccountId; // from 1; 0: none

// PEAK_ALLOCATED is that of what was allocated: of both sides without what is only sampled (pages.h).
typedef enum { PEAK_TOTAL, PEAK_HOST, PEAK_DEVICE, PEAK_ALLOCATED, N_PEAKS } PeakId;

// The account's numbers, as a reader of the trace sees them.
typedef struct {
    ULong live_bytes;
    ULong live_blocks;
    ULong total_bytes;
    ULong total_blocks;
    ULong temporaries;
} Balance;

#endif
