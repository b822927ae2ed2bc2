// SPDX-License-Identifier: GPL-2.0-or-later
//
// The driver source: what the kernel's GPU drivers commit below the CUDA API. The program's system calls on their
// devices are followed: which descriptor is of which device or buffer, and what each ioctl did. What the program opens
// decides who decodes that: nvmap.c and gpu.c (Tegra) or rm.c (elsewhere, and Tegra from Thor on). They fill files
// (file.h), which lie in maps (map.h) and keep memory alive (memory.h).

#ifndef JM_DRIVER_H
#define JM_DRIVER_H

#include "base/compat.h"

void jm_driver_init(void);

// Around each system call of the program.
void jm_driver_before_syscall(ThreadId tid, UInt number, const UWord *args);
void jm_driver_after_syscall(ThreadId tid, UInt number, const UWord *args, SysRes result);

// Whether the thread's system call maps a buffer or a device: then it is not for pages/ to count.
Bool jm_driver_is_mapping(ThreadId tid);

// Whether a buffer or a device is mapped at the address.
Bool jm_driver_is_mapped(Addr address);

void jm_driver_after_fork_in_child(ThreadId tid);

void jm_driver_write_counters(void);
void jm_driver_stats(void); // tells what it keeps (stats.h)

#endif
