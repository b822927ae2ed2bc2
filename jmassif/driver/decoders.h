// SPDX-License-Identifier: GPL-2.0-or-later
//
// The decoders of ioctls by type of file: nvmap.c and gpu.c (Tegra), rm.c (elsewhere, and Tegra from Thor on). Each
// function is called around a call on such a file, or when the file's last reference is gone. A decoder sees the
// structure that the program passed, before and after the call. Sizes are in bytes.

#pragma once

#include "driver/file.h"
#include "driver/memory.h"
#include "host/host.h"

// Room for the largest structure that is decoded as a whole, VID_HEAP_CONTROL's of 184 bytes.
#define JM_DRIVER_STRUCT_BYTES 192

// An ioctl under way. `in` is a copy, because drivers return results in the same fields.
struct DriverCall {
    DriverFile *file;
    UWord fd;
    UInt command;
    UWord argument;
    SizeT n_bytes; // size of the structure; 0: none, or unreadable
    UChar in[JM_DRIVER_STRUCT_BYTES];
    UChar out[JM_DRIVER_STRUCT_BYTES]; // after the call
    DriverFile *taken;                 // for the decoder, from before the call to after it
    UInt taken_id;
};

// Fields of the structure by offset, before and after the call; 0 beyond its end.
ULong jm_driver_field(const DriverCall *call, const UChar *bytes, UInt offset, UInt width);
#define jm_driver_in32(call, offset)  ((UInt)jm_driver_field(call, (call)->in, offset, 4))
#define jm_driver_in64(call, offset)  jm_driver_field(call, (call)->in, offset, 8)
#define jm_driver_out32(call, offset) ((UInt)jm_driver_field(call, (call)->out, offset, 4))
#define jm_driver_out64(call, offset) jm_driver_field(call, (call)->out, offset, 8)

// Deviations from the drivers' headers; the trace has their counters.
typedef enum {
    ODD_UNKNOWN_IOCTL,  // on a decoded device
    ODD_UNKNOWN_HANDLE, // freed or used, but its creation was not seen
    ODD_UNREADABLE,     // the ioctl's structure
    ODD_STALE,          // a handle that was reused, though its end was not seen
    ODD_SIZE_DIFFERS,   // the driver reports another size than was requested
    N_ODD
} Odd;
void jm_driver_count(Odd what);

// Counts a successful ioctl that the decoder does not know, in total and by its number.
void jm_driver_unknown(const DriverCall *call, UInt command);

// The first row of a table for which the expression holds; NULL if there is none.
#define JM_ROW(table, row, is_wanted)                                                                                  \
    ({                                                                                                                 \
        const __typeof__((table)[0]) *row = (table), *const end_ = row + sizeof(table) / sizeof(table)[0];             \
        while (row < end_ && !(is_wanted))                                                                             \
            row++;                                                                                                     \
        row < end_ ? row : NULL;                                                                                       \
    })

// /dev/nvmap, which allocates Tegra's memory, and its buffers.
void jm_nvmap_opened(DriverFile *file);
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
