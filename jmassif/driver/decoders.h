// SPDX-License-Identifier: GPL-2.0-or-later
//
// The decoders of ioctls by type of file (driver.c): nvmap.c and gpu.c (Tegra), rm.c (elsewhere, and Tegra from Thor
// on). Each function is called around a call on such a file, or when the file's last reference is gone.

#ifndef JM_DRIVER_DECODERS_H
#define JM_DRIVER_DECODERS_H

#include "driver/call.h"

// /dev/nvmap, which allocates Tegra's memory, and its buffers.
void jm_nvmap_before(ThreadId tid, DriverCall *call);
void jm_nvmap_after(ThreadId tid, DriverCall *call, Long result);
void jm_nvmap_ended(ThreadId tid, DriverFile *file);
void jm_buffer_ended(ThreadId tid, DriverFile *buffer);
void jm_nvmap_after_fork_in_child(void); // detaches the child from its parent's client

// nvgpu: address spaces and channels of Tegra's GPU.
void jm_gpu_after(ThreadId tid, DriverCall *call, Long result);
void jm_gpu_space_ended(ThreadId tid, DriverFile *space);
void jm_gpu_channel_ended(ThreadId tid, DriverFile *channel);

// The resource manager and unified memory.
void jm_rm_after(ThreadId tid, DriverCall *call, Long result);
void jm_rm_ended(ThreadId tid, DriverFile *file);
DriverMemory *jm_rm_attached(const DriverFile *file); // memory behind a mapping of the file; NULL: not known
void jm_rm_write_counters(void);
void jm_uvm_after(ThreadId tid, DriverCall *call, Long result);
void jm_uvm_ended(ThreadId tid, DriverFile *file);

#endif
