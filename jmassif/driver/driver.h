// SPDX-License-Identifier: GPL-2.0-or-later
//
// The driver source: memory that the kernel's GPU drivers commit below the CUDA API. It follows the program's system
// calls on their devices: the device or buffer of each descriptor, and the effect of each ioctl. The device that the
// program opens decides the decoder: nvmap.c and gpu.c (Tegra) or rm.c (elsewhere, and Tegra from Thor on). Decoders
// fill files (file.h), which are mapped and keep memory alive (memory.h).

#pragma once

#include "host/types.h"

void jm_driver_init(void);

// Around each system call of the program.
void jm_driver_before_syscall(ThreadId tid, UInt number, const UWord *args);
void jm_driver_after_syscall(ThreadId tid, UInt number, const UWord *args, Long result);

// True while the thread is in a call on a driver's file; pages/ must not count a mapping that this call makes.
Bool jm_driver_is_mapping(ThreadId tid);

// True if a buffer or a device is mapped at the address.
Bool jm_driver_is_mapped(Addr address);

void jm_driver_after_fork_in_child(ThreadId tid);

void jm_driver_write_counters(void);
