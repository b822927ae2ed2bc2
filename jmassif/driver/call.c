// SPDX-License-Identifier: GPL-2.0-or-later
//
// Structures of ioctls, and counters of deviations from the drivers' headers; see call.h. A structure is copied before
// and after the call, so that decoders read its fields without checking the program's memory each time.

#include "driver/call.h"
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

static ULong field(const UChar *bytes, SizeT n_bytes, UInt offset, UInt width)
{
    ULong value = 0;
    if (offset + width <= n_bytes && offset + width <= JM_DRIVER_STRUCT_BYTES)
        memcpy(&value, bytes + offset, width);
    return value;
}

UInt jm_driver_in32(const DriverCall *call, UInt offset)
{
    return field(call->in, call->n_bytes, offset, 4);
}

ULong jm_driver_in64(const DriverCall *call, UInt offset)
{
    return field(call->in, call->n_bytes, offset, 8);
}

UInt jm_driver_out32(const DriverCall *call, UInt offset)
{
    return field(call->out, call->n_bytes, offset, 4);
}

ULong jm_driver_out64(const DriverCall *call, UInt offset)
{
    return field(call->out, call->n_bytes, offset, 8);
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
static struct {
    const HChar *driver;
    UInt command;
    ULong count, told;
} unknown[MOST_UNKNOWN];
static UInt n_unknown;

static const HChar *const driver_names[N_FILE_TYPES] = {
    [FILE_NVMAP] = "nvmap",   [FILE_GPU_CONTROL] = "nvgpu", [FILE_GPU_SPACE] = "nvgpu",
    [FILE_GPU_TSG] = "nvgpu", [FILE_GPU_CHANNEL] = "nvgpu", [FILE_RM_CONTROL] = "rm",
    [FILE_RM_DEVICE] = "rm",  [FILE_UVM] = "uvm",           [FILE_BUFFER] = "dmabuf"};

void jm_driver_unknown(const DriverCall *call, UInt command)
{
    jm_driver_count(ODD_UNKNOWN_IOCTL);
    const HChar *driver = driver_names[call->file->type];
    UInt i = 0;
    while (i < n_unknown && (unknown[i].command != command || unknown[i].driver != driver))
        i++;
    if (i == MOST_UNKNOWN)
        return;
    if (i == n_unknown) {
        unknown[i].driver = driver;
        unknown[i].command = command;
        n_unknown++;
    }
    unknown[i].count++;
}

void jm_driver_calls_write_counters(void)
{
    static ULong told[N_ODD];
    for (UInt i = 0; i < N_ODD; i++)
        if (counts[i] != told[i])
            jm_trace_counter(odd_names[i], told[i] = counts[i]);
    for (UInt i = 0; i < n_unknown; i++) {
        HChar key[48];
        if (unknown[i].count == unknown[i].told)
            continue;
        jm_format(key, sizeof key, "%s.%s.0x%x", odd_names[ODD_UNKNOWN_IOCTL], unknown[i].driver, unknown[i].command);
        jm_trace_counter(key, unknown[i].told = unknown[i].count);
    }
}
