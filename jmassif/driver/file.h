// SPDX-License-Identifier: GPL-2.0-or-later
//
// Open file descriptions of the driver's devices and buffers, and the program's descriptors of them. A description
// lives while descriptors, mappings or a device's handles refer to it. Sizes are in bytes.

#pragma once

#include "host/types.h"

typedef struct DriverMemory DriverMemory; // memory.h
typedef struct DriverCall DriverCall;     // decoders.h

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
    struct DriverFile *next, *previous; // in the list of all files
    FileType type;
    UInt n_references;
    void *object;         // owned by the decoder
    ULong bytes;          // size of a buffer, in whole pages
    DriverMemory *memory; // of a buffer; NULL: none yet, or not its own
    ULong device, inode;  // of a buffer once it has had a descriptor
    ULong attached;       // the RM object that a mapping of the file shows; 0: not set (rm.c)
} DriverFile;

// Functions of a type of file; NULL: nothing to do.
typedef struct {
    const HChar *name;
    void (*before)(ThreadId tid, DriverCall *call);
    void (*after)(ThreadId tid, DriverCall *call, Long result);
    void (*ended)(ThreadId tid, DriverFile *file); // ends what the file has kept alive
    SizeT n_bytes;                                 // to copy of a structure; 0: the command's number has its size
} Decoder;
extern const Decoder jm_decoders[N_FILE_TYPES]; // driver.c

// A new file has no references; releasing the last one frees it.
DriverFile *jm_driver_file_new(FileType type);
void jm_driver_file_hold(DriverFile *file);
void jm_driver_file_release(ThreadId tid, DriverFile *file);

// The file of that type after `file` (NULL: the first); NULL: none.
DriverFile *jm_driver_next_file(const DriverFile *file, FileType type);

// The program's descriptors. Setting one holds the file and releases the one before; taking it passes its reference to
// the caller.
DriverFile *jm_driver_fd(UWord fd); // NULL: not a driver's file
void jm_driver_fd_set(ThreadId tid, UWord fd, DriverFile *file);
DriverFile *jm_driver_fd_take(UWord fd);

// Drops the descriptors from `first` to `last` that are no longer open.
void jm_driver_fds_check(ThreadId tid, UWord first, UWord last);

// The live buffer behind a descriptor of unknown origin, by device and inode; NULL: none, or not unique.
DriverFile *jm_driver_file_behind(UWord fd);

extern UInt jm_driver_n_fds; // descriptors of driver files

UInt jm_driver_n_files(FileType type);
