// SPDX-License-Identifier: GPL-2.0-or-later
//
// The decoder of nvgpu's devices: address spaces and channels of Tegra's GPU.

#ifndef JM_DRIVER_GPU_H
#define JM_DRIVER_GPU_H

#include "driver/call.h"

void jm_gpu_init(void);

void jm_gpu_after(ThreadId tid, DriverCall *call, Long result);

#endif
