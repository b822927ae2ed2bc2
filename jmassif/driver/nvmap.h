// SPDX-License-Identifier: GPL-2.0-or-later
//
// The decoder of /dev/nvmap, which hands out Tegra's memory.

#ifndef JM_DRIVER_NVMAP_H
#define JM_DRIVER_NVMAP_H

#include "driver/call.h"

void jm_nvmap_init(void);

void jm_nvmap_before(ThreadId tid, DriverCall *call);
void jm_nvmap_after(ThreadId tid, DriverCall *call, SysRes result);

// Clients of the parent's stay the parent's.
void jm_nvmap_after_fork_in_child(void);

#endif
