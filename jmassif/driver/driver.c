// SPDX-License-Identifier: GPL-2.0-or-later
//
// System calls on the drivers' devices; see driver.h. This file chooses the decoder by the device of a descriptor and
// hands it the ioctls (decoders.h). A program without such a descriptor pays one
// comparison per call.
//
// A number that a call releases (close, FREE) leaves its table before the call and returns if the call fails: once the
// kernel has released it, another thread may get the same number.

#include "driver/driver.h"
#include "base/array.h"
#include "base/client_memory.h"
#include "base/kernel.h"
#include "base/libc.h"
#include "base/options.h"
#include "base/per_thread.h"
#include "base/text.h"
#include "driver/decoders.h"
#include "driver/file.h"
#include "host/host.h"
#include "trace/trace.h"

#include <asm/unistd.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#ifndef __NR_openat2
#define __NR_openat2 437
#endif
#define CLOSE_RANGE_CLOEXEC 4 // linux/close_range.h

typedef struct {
    Bool is_active;
    UInt number;
    UWord fd;
    DriverFile *file; // a reference for the time of the call; close takes the descriptor's own
    DriverCall call;
} Pending;

static PerThread pending = JM_PER_THREAD("jm.driver", Pending *, jm_per_thread_free);

// NULL before the thread's first call on a device.
static inline Pending *pending_of(ThreadId tid)
{
    return jm_per_thread_has_any(&pending) ? *JM_OF_THREAD(&pending, Pending *, tid) : NULL;
}

static DriverMap *own; // the process's address space

typedef struct {
    const HChar *path; // glob
    FileType type;
} Device;

static const Device devices[] = {
    {"/dev/nvmap", FILE_NVMAP},
    {"/dev/nvhost-ctrl-gpu", FILE_GPU_CONTROL},
    {"/dev/nvhost-as-gpu", FILE_GPU_SPACE},
    {"/dev/nvhost-tsg-gpu", FILE_GPU_TSG},
    {"/dev/nvhost-gpu", FILE_GPU_CHANNEL},
    {"/dev/nvgpu/*/ctrl", FILE_GPU_CONTROL},
    {"/dev/nvgpu/*/as", FILE_GPU_SPACE},
    {"/dev/nvgpu/*/tsg", FILE_GPU_TSG},
    {"/dev/nvgpu/*/channel", FILE_GPU_CHANNEL},
    {"/dev/nvidiactl", FILE_RM_CONTROL},
    {"/dev/nvidia?", FILE_RM_DEVICE},
    {"/dev/nvidia1?", FILE_RM_DEVICE},
    {"/dev/nvidia-uvm", FILE_UVM},
};

const Decoder jm_decoders[N_FILE_TYPES] = {
    [FILE_NVMAP] = {"nvmap", jm_nvmap_before, jm_nvmap_after, jm_nvmap_ended, 0},
    [FILE_GPU_CONTROL] = {"nvgpu", NULL, jm_gpu_after, NULL, 0},
    [FILE_GPU_SPACE] = {"nvgpu", NULL, jm_gpu_after, jm_gpu_space_ended, 0},
    [FILE_GPU_CHANNEL] = {"nvgpu", NULL, jm_gpu_after, jm_gpu_channel_ended, 0},
    [FILE_GPU_TSG] = {"nvgpu", NULL, jm_gpu_after, NULL, 0},
    [FILE_RM_CONTROL] = {"rm", NULL, jm_rm_after, jm_rm_ended, 0},
    [FILE_RM_DEVICE] = {"rm", NULL, jm_rm_after, jm_rm_ended, 0},
    [FILE_UVM] = {"uvm", NULL, jm_uvm_after, jm_uvm_ended, 24},
    [FILE_BUFFER] = {"dmabuf", NULL, NULL, jm_buffer_ended, 0},
};

// Recognises a device by the path that was opened, or by the path that a symbolic link led to.
static void device_opened(ThreadId tid, Addr path_address, UWord fd)
{
    HChar path[64], link[32];
    if (!jm_read_string(path_address, path, sizeof path))
        return;
    const Device *device = JM_ROW(devices, d, jm_text_matches(d->path, path));
    if (!device && (strncmp(path, "/dev/", 5) == 0 || strstr(path, "nv") != NULL)) {
        jm_format(link, sizeof link, "/proc/self/fd/%lu", fd);
        SSizeT n = jm_read_link(link, path, sizeof path - 1);
        path[n > 0 ? n : 0] = 0;
        device = JM_ROW(devices, d, jm_text_matches(d->path, path));
    }
    if (!device)
        return;
    DriverFile *file = jm_driver_file_new(device->type);
    if (file->type == FILE_NVMAP)
        jm_nvmap_opened(file);
    jm_driver_fd_set(tid, fd, file);
}

// ---- structures of ioctls ------------------------------------------------------------------------------------

static Bool copy_structure(const DriverCall *call, UChar *to)
{
    SizeT bytes = call->n_bytes < sizeof call->in ? call->n_bytes : sizeof call->in;
    return !bytes || jm_read_bytes(call->argument, to, bytes);
}

ULong jm_driver_field(const DriverCall *call, const UChar *bytes, UInt offset, UInt width)
{
    ULong value = 0;
    if (offset + width <= call->n_bytes && offset + width <= JM_DRIVER_STRUCT_BYTES)
        memcpy(&value, bytes + offset, width);
    return value;
}

// ---- deviations ----------------------------------------------------------------------------------------------

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

void jm_driver_unknown(const DriverCall *call, UInt command)
{
    jm_driver_count(ODD_UNKNOWN_IOCTL);
    Unknown wanted = {jm_decoders[call->file->type].name, command, 0, 0};
    Unknown *found = jm_array_find(&unknown, &wanted, sizeof wanted.driver + sizeof wanted.command);
    if (!found && jm_array_n(&unknown) < MOST_UNKNOWN)
        found = jm_array_at(&unknown, jm_array_add(&unknown, &wanted));
    if (found)
        found->count++;
}

// ---- calls ---------------------------------------------------------------------------------------------------

static Pending *start(ThreadId tid, DriverFile *file, UInt number, UWord fd)
{
    Pending **of_thread = JM_OF_THREAD(&pending, Pending *, tid);
    if (!*of_thread)
        *of_thread = host_alloc_zeroed("jm.driver", 1, sizeof **of_thread);
    Pending *p = *of_thread;
    p->is_active = True;
    p->number = number;
    p->fd = fd;
    p->file = file;
    return p;
}

static void before_ioctl(ThreadId tid, const UWord *args)
{
    DriverFile *file = jm_driver_fd(args[0]);
    if (!file)
        return;
    jm_driver_file_hold(file);
    DriverCall *call = &start(tid, file, __NR_ioctl, args[0])->call;
    memset(call, 0, sizeof *call);
    call->file = file;
    call->fd = args[0];
    call->command = (UInt)args[1];
    call->argument = args[2];
    const SizeT n_bytes = jm_decoders[file->type].n_bytes;
    call->n_bytes = n_bytes ? n_bytes : (call->command >> 16) & 0x3fff; // linux/ioctl.h
    if (!copy_structure(call, call->in))
        call->n_bytes = 0;
    if (jm_decoders[file->type].before)
        jm_decoders[file->type].before(tid, call);
}

Bool jm_driver_is_mapping(ThreadId tid)
{
    const Pending *p = pending_of(tid);
    return p && p->is_active;
}

Bool jm_driver_is_mapped(Addr address)
{
    return own && jm_driver_map_has(own, address);
}

static void fd_duplicated(ThreadId tid, UWord from, UWord to)
{
    DriverFile *file = jm_driver_fd(from);
    if (from == to)
        return;
    if (file)
        jm_driver_fd_set(tid, to, file);
    else if ((file = jm_driver_fd_take(to)))
        jm_driver_file_release(tid, file);
}

// Calls without a pending record that change descriptors or mappings.
static void after_other(ThreadId tid, UInt number, const UWord *args, UWord result)
{
    switch (number) {
    case __NR_dup:
#ifdef __NR_dup2
    case __NR_dup2:
#endif
    case __NR_dup3:
        fd_duplicated(tid, args[0], result);
        break;
    case __NR_fcntl:
        if (args[1] == F_DUPFD || args[1] == F_DUPFD_CLOEXEC)
            fd_duplicated(tid, args[0], result);
        break;
    case __NR_close_range:
        if (!(args[2] & CLOSE_RANGE_CLOEXEC))
            jm_driver_fds_check(tid, (UInt)args[0], (UInt)args[1]);
        break;
    case __NR_mmap:
        jm_driver_map_remove(tid, own, result, args[1]);
        break;
    case __NR_munmap:
        jm_driver_map_remove(tid, own, args[0], HOST_PAGE_UP(args[1]));
        break;
    default:
        break;
    }
}

static void end_pending(ThreadId tid, Pending *p, const UWord *args, Long result)
{
    p->is_active = False;
    if (p->number == __NR_close) {
        FileStatus found;
        // The core refuses descriptors beyond its limit without asking the kernel.
        if (jm_is_error(result) && !jm_driver_fd(p->fd) && jm_file_status(p->fd, &found))
            jm_driver_fd_set(tid, p->fd, p->file);
    } else if (p->number == __NR_ioctl) {
        if (!copy_structure(&p->call, p->call.out)) {
            jm_driver_count(ODD_UNREADABLE);
            p->call.n_bytes = 0;
        }
        if (jm_decoders[p->file->type].after)
            jm_decoders[p->file->type].after(tid, &p->call, result);
    } else if (!jm_is_error(result)) {
        jm_driver_map_add(tid, own, result, HOST_PAGE_UP(args[1]), p->file,
                          p->file->type == FILE_BUFFER ? p->file->memory : jm_rm_attached(p->file));
    }
    jm_driver_file_release(tid, p->file);
}

void jm_driver_before_syscall(ThreadId tid, UInt number, const UWord *args)
{
    if (!jm_options.driver)
        return;
    // A signal's handler runs: the interrupted call, which has had no effect, is made again.
    Pending *p = pending_of(tid);
    if (p && p->is_active)
        end_pending(tid, p, NULL, -EINTR);
    if (!jm_driver_n_fds)
        return;
    DriverFile *file;
    switch (number) {
    case __NR_ioctl:
        before_ioctl(tid, args);
        break;
    case __NR_close:
        file = jm_driver_fd_take(args[0]);
        if (file)
            start(tid, file, number, args[0]);
        break;
    case __NR_mmap:
        file = args[3] & MAP_ANONYMOUS ? NULL : jm_driver_fd((UInt)args[4]);
        if (file) {
            jm_driver_file_hold(file);
            start(tid, file, number, args[4]);
        }
        break;
    default:
        break;
    }
}

void jm_driver_after_syscall(ThreadId tid, UInt number, const UWord *args, Long result)
{
    if (!jm_options.driver)
        return;
    Pending *p = pending_of(tid);
    if (p && p->is_active && p->number == number) {
        end_pending(tid, p, args, result);
        return;
    }
    if (jm_is_error(result))
        return;
    switch (number) {
#ifdef __NR_open
    case __NR_open:
        device_opened(tid, args[0], result);
        break;
#endif
    case __NR_openat:
    case __NR_openat2:
        device_opened(tid, args[1], result);
        break;
    default:
        if (jm_driver_n_fds || jm_driver_map_count(own))
            after_other(tid, number, args, result);
        break;
    }
}

// ---- the tool's life -----------------------------------------------------------------------------------------

void jm_driver_init(void)
{
    own = jm_driver_map_new();
}

void jm_driver_after_fork_in_child(ThreadId tid)
{
    jm_driver_memory_after_fork_in_child();
    // The drivers' mappings are not inherited.
    jm_driver_map_remove(tid, own, 0, ~(ULong)0);
    jm_nvmap_after_fork_in_child();
}

void jm_driver_write_counters(void)
{
    static ULong written[N_ODD], channels, spaces;
    for (UInt i = 0; i < N_ODD; i++)
        jm_trace_changed(odd_names[i], counts[i], &written[i]);
    for (Word i = 0; i < jm_array_n(&unknown); i++) {
        Unknown *u = jm_array_at(&unknown, i);
        HChar key[48];
        jm_format(key, sizeof key, "%s.%s.0x%x", odd_names[ODD_UNKNOWN_IOCTL], u->driver, (UInt)u->command);
        jm_trace_changed(key, u->count, &u->written);
    }
    jm_trace_changed("driver-channels", jm_driver_n_files(FILE_GPU_CHANNEL), &channels);
    jm_trace_changed("driver-address-spaces", jm_driver_n_files(FILE_GPU_SPACE), &spaces);
    jm_driver_memory_write_counters();
    jm_rm_write_counters();
}
