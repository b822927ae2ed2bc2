// SPDX-License-Identifier: GPL-2.0-or-later
//
// Types of the ledger: an account's id, its balance, the peaks. Sizes are in bytes.

#ifndef JM_BALANCE_H
#define JM_BALANCE_H

#include "attribution/kind.h"
#include "host/types.h"

typedef UInt AccountId; // from 1; 0 means no account

// PEAK_ALLOCATED is the peak of allocated memory: host and device, without sampled pages (pages.h).
typedef enum { PEAK_TOTAL, PEAK_HOST, PEAK_DEVICE, PEAK_ALLOCATED, N_PEAKS } PeakId;

// An account's numbers, as a reader of the trace sees them.
typedef struct {
    ULong live_bytes;
    ULong live_blocks;
    ULong total_bytes;
    ULong total_blocks;
    ULong temporaries;
} Balance;

#endif
