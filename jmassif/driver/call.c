// SPDX-License-Identifier: GPL-2.0-or-later
//
// Structures of ioctls, and counters of deviations from the drivers' headers; see call.h. A structure is copied before
// and after the call, so that decoders read its fields without checking the program's memory each time.

#include "driver/call.h"
#include "base/array.h"
#include "base/client_memory.h"
#include "base/kernel.h"
#include "base/libc.h"
#include "base/text.h"
#include "trace/trace.h"

#include <asm/unistd.h>
#include <errno.h>

void jm_driver_call_begins(DriverCall *call, DriverFile *file, const UWord *args, SizeT n_bytes)
{
    memset(call, 0, sizeof *call);
    call->file = file;
    call->fd = args[0];
    call->command = (UInt)args[1];
    call->argument = args[2];
    call->n_bytes = n_bytes ? n_bytes : (call->command >> 16) & 0x3fff; // linux/ioctl.h
    SizeT bytes = call->n_bytes < sizeof call->in ? call->n_bytes : sizeof call->in;
    if (bytes && !jm_read_bytes(call->argument, call->in, bytes))
        call->n_bytes = 0;
}

void jm_driver_call_ended(DriverCall *call)
{
    SizeT bytes = call->n_bytes < sizeof call->out ? call->n_bytes : sizeof call->out;
    if (bytes && !jm_read_bytes(call->argument, call->out, bytes)) {
        jm_driver_count(ODD_UNREADABLE);
        call->n_bytes = 0;
    }
}

// ---- fields ----------------------------------------------------------------------------------------------------

ULong jm_driver_field(const DriverCall *call, const UChar *bytes, UInt offset, UInt width)
{
    ULong value = 0;
    if (offset + width <= call->n_bytes && offset + width <= JM_DRIVER_STRUCT_BYTES)
        memcpy(&value, bytes + offset, width);
    return value;
}

Bool jm_driver_ask(UWord fd, UInt command, void *argument, Bool *is_unknown)
{
    Long result = jm_kernel_call(__NR_ioctl, fd, command, (UWord)argument, 0, 0);
    *is_unknown = result == -ENOTTY;
    return result == 0;
}

// ---- deviations ------------------------------------------------------------------------------------------------

static ULong counts[N_ODD];

static const HChar *const odd_names[N_ODD] = {"driver-ioctl-unknown", "driver-handle-unknown",
                                              "driver-ioctl-unreadable", "driver-handle-ended-unseen",
                                              "driver-size-differs"};

void jm_driver_count(Odd what)
{
    counts[what]++;
}

// Unknown ioctls by number, to identify those of a new release. Beyond MOST_UNKNOWN numbers only the sum counts them.
#define MOST_UNKNOWN 32
typedef struct {
    const HChar *driver;
    ULong command;
    ULong count, written; // written: the count in the trace
} Unknown;
static Array unknown = JM_ARRAY("jm.driver", Unknown);

static const HChar *const driver_names[N_FILE_TYPES] = {
    [FILE_NVMAP] = "nvmap",   [FILE_GPU_CONTROL] = "nvgpu", [FILE_GPU_SPACE] = "nvgpu",
    [FILE_GPU_TSG] = "nvgpu", [FILE_GPU_CHANNEL] = "nvgpu", [FILE_RM_CONTROL] = "rm",
    [FILE_RM_DEVICE] = "rm",  [FILE_UVM] = "uvm",           [FILE_BUFFER] = "dmabuf"};

void jm_driver_unknown(const DriverCall *call, UInt command)
{
    jm_driver_count(ODD_UNKNOWN_IOCTL);
    Unknown wanted = {driver_names[call->file->type], command, 0, 0};
    Unknown *found = jm_array_find(&unknown, &wanted, sizeof wanted.driver + sizeof wanted.command);
    if (!found && jm_array_n(&unknown) < MOST_UNKNOWN)
        found = jm_array_at(&unknown, jm_array_add(&unknown, &wanted));
    if (found)
        found->count++;
}

void jm_driver_calls_write_counters(void)
{
    static ULong written[N_ODD];
    for (UInt i = 0; i < N_ODD; i++)
        jm_trace_changed(odd_names[i], counts[i], &written[i]);
    for (Word i = 0; i < jm_array_n(&unknown); i++) {
        Unknown *u = jm_array_at(&unknown, i);
        HChar key[48];
        jm_format(key, sizeof key, "%s.%s.0x%x", odd_names[ODD_UNKNOWN_IOCTL], u->driver, (UInt)u->command);
        jm_trace_changed(key, u->count, &u->written);
    }
}
