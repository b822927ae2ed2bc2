// SPDX-License-Identifier: GPL-2.0-or-later
//
// The driver source: what the kernel's GPU drivers commit below the CUDA API. The program's system calls on their
// devices are followed: which descriptor is of which device or buffer, and what each ioctl did. The decoders are
// nvmap.c and gpu.c (Tegra) and rm.c (elsewhere, and Tegra from Thor on); what the program opens
// decides.

#ifndef JM_DRIVER_H
#define JM_DRIVER_H

#include "base/compat.h"
#include "driver/file.h"
#include "driver/map.h"
#include "driver/memory.h"

void jm_driver_init(void);

// Around each system call of the program.
void jm_driver_before_syscall(ThreadId tid, UInt number, const UWord *args);
void jm_driver_after_syscall(ThreadId tid, UInt number, const UWord *args, SysRes result);

// Whether the thread's system call maps a buffer or a device: then it is not for pages.c to count.
Bool jm_driver_is_mapping(ThreadId tid);

// Whether a buffer or a device is mapped at the address.
Bool jm_driver_is_mapped(Addr address);

void jm_driver_after_fork_in_child(ThreadId tid);

void jm_driver_write_counters(void);
void jm_driver_stats(void); // tells what it keeps (stats.h)

// ---- for the decoders ----------------------------------------------------------------------------------------

// No structure that is looked into as a whole is larger: VID_HEAP_CONTROL's.
#define JM_DRIVER_STRUCT_BYTES 192

// An ioctl under way. Its structure as it was before the call, because drivers return results in the same fields.
typedef struct {
    DriverFile *file;
    UInt command;
    UWord argument;
    SizeT n_bytes; // of the structure
    UChar in[JM_DRIVER_STRUCT_BYTES];
    UChar out[JM_DRIVER_STRUCT_BYTES]; // after the call
    DriverFile *taken;                 // a decoder's own, between before and after
    UInt taken_id;
} DriverCall;

// Fields of the structure; 0 beyond its end.
UInt jm_driver_in32(const DriverCall *call, UInt offset);
ULong jm_driver_in64(const DriverCall *call, UInt offset);
UInt jm_driver_out32(const DriverCall *call, UInt offset);
ULong jm_driver_out64(const DriverCall *call, UInt offset);

static inline ULong jm_driver_whole_pages(ULong bytes)
{
    return (bytes + VKI_PAGE_SIZE - 1) & ~(ULong)(VKI_PAGE_SIZE - 1);
}

// An ioctl of the recorder's own on a descriptor of the program. False: it failed.
Bool jm_driver_ask(UWord fd, UInt command, void *argument, Bool *is_unknown);

typedef enum {
    ODD_UNKNOWN_IOCTL,  // of a device that is decoded
    ODD_UNKNOWN_HANDLE, // freed or used, but never seen made
    ODD_UNREADABLE,     // the structure
    ODD_STALE,          // a handle that was given out again without our seeing its end
    ODD_SIZE_DIFFERS,   // the driver says another size than was asked for
    N_ODD
} Odd;
void jm_driver_count(Odd what);

void jm_nvmap_init(void);
void jm_nvmap_before(ThreadId tid, DriverCall *call);
void jm_nvmap_after(ThreadId tid, DriverCall *call, UWord fd, SysRes result);
void jm_nvmap_after_fork_in_child(void);

void jm_gpu_init(void);
void jm_gpu_after(ThreadId tid, DriverCall *call, SysRes result);

void jm_rm_init(void);
void jm_rm_after(ThreadId tid, DriverCall *call, SysRes result);
void jm_uvm_after(ThreadId tid, DriverCall *call, SysRes result);
DriverMemory *jm_rm_attached(const DriverFile *file); // what a mapping of the file shows
void jm_rm_write_counters(void);

#endif
