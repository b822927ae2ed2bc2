// SPDX-License-Identifier: GPL-2.0-or-later
//
// The decoder of /dev/nvmap, which allocates Tegra's memory.

#ifndef JM_DRIVER_NVMAP_H
#define JM_DRIVER_NVMAP_H

#include "driver/call.h"

void jm_nvmap_init(void);

void jm_nvmap_before(ThreadId tid, DriverCall *call);
void jm_nvmap_after(ThreadId tid, DriverCall *call, Long result);

// Detaches a forked child from its parent's client.
void jm_nvmap_after_fork_in_child(void);

#endif
