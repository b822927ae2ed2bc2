// SPDX-License-Identifier: GPL-2.0-or-later
//
// An ioctl on a driver's device, as its decoder sees it: the structure that the program passed, before the call and
// after it. The decoders are nvmap.c and gpu.c (Tegra) and rm.c (elsewhere, and Tegra from Thor on); this is all that
// they may ask of a call, and driver.c, which follows the system calls, knows the decoders.

#ifndef JM_DRIVER_CALL_H
#define JM_DRIVER_CALL_H

#include "base/compat.h"
#include "driver/file.h"

// No structure that is looked into as a whole is larger: VID_HEAP_CONTROL's.
#define JM_DRIVER_STRUCT_BYTES 192

// An ioctl under way. Its structure as it was before the call, because drivers return results in the same fields.
typedef struct {
    DriverFile *file;
    UWord fd;
    UInt command;
    UWord argument;
    SizeT n_bytes; // of the structure
    UChar in[JM_DRIVER_STRUCT_BYTES];
    UChar out[JM_DRIVER_STRUCT_BYTES]; // after the call
    DriverFile *taken;                 // a decoder's own, between before and after
    UInt taken_id;
} DriverCall;

// Reads the structure. `n_bytes` 0: as many as the command's number says.
void jm_driver_call_begins(DriverCall *call, DriverFile *file, const UWord *args, SizeT n_bytes);
void jm_driver_call_ended(DriverCall *call);

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

// What is not as the drivers' headers have it is counted, and told at the end.
typedef enum {
    ODD_UNKNOWN_IOCTL,  // of a device that is decoded
    ODD_UNKNOWN_HANDLE, // freed or used, but never seen made
    ODD_UNREADABLE,     // the structure
    ODD_STALE,          // a handle that was given out again without our seeing its end
    ODD_SIZE_DIFFERS,   // the driver says another size than was asked for
    N_ODD
} Odd;
void jm_driver_count(Odd what);

// An ioctl that has succeeded and that is none of those which the decoder knows: also counted by its number.
void jm_driver_unknown(const DriverCall *call, UInt command);

void jm_driver_calls_write_counters(void);

#endif
