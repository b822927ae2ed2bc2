// SPDX-License-Identifier: GPL-2.0-or-later
//
// Open file descriptions of the driver's devices and buffers, and which of the program's descriptors refer to them. A
// description lives while anything refers to it: descriptors, mappings, a device's own handles. What ends with it is
// for the decoder of its type to say, so that this file knows of none of them.

#ifndef JM_DRIVER_FILE_H
#define JM_DRIVER_FILE_H

#include "base/compat.h"

typedef struct DriverMemory DriverMemory; // memory.h

typedef enum {
    FILE_NVMAP,
    FILE_GPU_CONTROL,
    FILE_GPU_SPACE, // an address space of the GPU
    FILE_GPU_CHANNEL,
    FILE_GPU_TSG,    // a group of channels
    FILE_RM_CONTROL, // /dev/nvidiactl
    FILE_RM_DEVICE,  // /dev/nvidia0 …
    FILE_UVM,
    FILE_BUFFER, // a dmabuf
    N_FILE_TYPES
} FileType;

typedef struct DriverFile {
    struct DriverFile *next, *previous; // of all
    FileType type;
    UInt n_references;
    void *object;         // the decoder's
    ULong bytes;          // of a buffer: whole pages
    DriverMemory *memory; // of a buffer; NULL: it has none, or none of its own
    ULong device, inode;  // of a buffer that has had a descriptor
    ULong attached;       // of the resource manager: the object that a mapping of the file is to show
} DriverFile;

DriverFile *jm_driver_file_new(FileType type);
void jm_driver_file_hold(DriverFile *file);
void jm_driver_file_release(ThreadId tid, DriverFile *file);

// Called when the last reference of a file of the type is gone: ends what the file has kept alive.
void jm_driver_file_on_end(FileType type, void (*end)(ThreadId tid, DriverFile *file));

// The program's descriptors. Setting one drops what it was; taking it leaves its reference to the caller.
DriverFile *jm_driver_fd(UWord fd); // NULL: of no interest
void jm_driver_fd_set(ThreadId tid, UWord fd, DriverFile *file);
DriverFile *jm_driver_fd_take(UWord fd);

// Lets the program use a descriptor that the core would refuse: r32's nvmap gives out descriptors beyond any limit,
// from 1024 on, and the core's is the usual soft limit of 1024.
void jm_driver_fd_allow(UWord fd);

// Around each system call of the program, once that has been done: the core's own descriptors stay beyond its reach,
// and a new program has the limit that this one was started with.
void jm_driver_fd_before_syscall(UInt number, const UWord *args);
void jm_driver_fd_after_syscall(UInt number, const UWord *args, Bool has_failed);

// Drops those from `first` to `last` that the program has no more.
void jm_driver_fds_check(ThreadId tid, UWord first, UWord last);

// The live buffer that a descriptor of unknown origin refers to, by what the kernel says of it; NULL: none.
DriverFile *jm_driver_file_behind(UWord fd);

extern UInt jm_driver_n_fds; // that are of interest

UInt jm_driver_n_files(FileType type);
void jm_driver_files_stats(void); // tells what it keeps (stats.h)

#endif
