// SPDX-License-Identifier: GPL-2.0-or-later
//
// The decoders of the resource manager's devices (/dev/nvidiactl, /dev/nvidia0 …) and of unified memory's.

#ifndef JM_DRIVER_RM_H
#define JM_DRIVER_RM_H

#include "driver/call.h"

void jm_rm_init(void);

void jm_rm_after(ThreadId tid, DriverCall *call, Long result);
void jm_uvm_after(ThreadId tid, DriverCall *call, Long result);

DriverMemory *jm_rm_attached(const DriverFile *file); // memory behind a mapping of the file; NULL: not known

void jm_rm_write_counters(void);

#endif
