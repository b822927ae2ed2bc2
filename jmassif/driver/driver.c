// SPDX-License-Identifier: GPL-2.0-or-later
//
// System calls on the drivers' devices; see driver.h. A program that has no such descriptor pays a comparison per call.
//
// What a call ends (close, FREE) leaves its table before the call, and comes back if it fails: as soon as the kernel is
// done, another thread may be given the same number.

#include "driver/driver.h"
#include "base/client_memory.h"
#include "base/kernel.h"
#include "base/options.h"
#include "base/per_thread.h"
#include "base/text.h"
#include "base/stats.h"
#include "trace/trace.h"

#ifndef __NR_openat2
#define __NR_openat2 437
#endif
#ifndef __NR_close_range
#define __NR_close_range 436
#endif

#define SCM_RIGHTS           1 // socket.h
#define SO_PEERCRED          17
#define CLOSE_RANGE_CLOEXEC  4 // linux/close_range.h
#define DUP_FD               0 // fcntl.h
#define DUP_FD_CLOEXEC       1030
#define MAP_ANONYMOUS_MEMORY 0x20

typedef struct {
    Bool is_active;
    DriverFile *file; // held while the call is under way; of close: taken
    DriverCall call;
} Pending;

static void forget_pending(ThreadId tid, void *record, ThreadEnd how)
{
    if (*(Pending **)record)
        VG_(free)(*(Pending **)record);
}

static PerThread pending = JM_PER_THREAD("jm.driver", Pending *, forget_pending);

// NULL: the thread has never called a driver.
static inline Pending *pending_of(ThreadId tid)
{
    return jm_per_thread_has_any(&pending) ? *JM_OF_THREAD(&pending, Pending *, tid) : NULL;
}
static DriverMap *own; // the process's address space
static ULong counts[N_ODD];

static const HChar *const odd_names[N_ODD] = {"driver-ioctl-unknown", "driver-handle-unknown",
                                              "driver-ioctl-unreadable", "driver-handle-ended-unseen",
                                              "driver-size-differs"};

void jm_driver_count(Odd what)
{
    counts[what]++;
}

// ---- structures ----------------------------------------------------------------------------------------------

static ULong field(const UChar *bytes, SizeT n_bytes, UInt offset, UInt width)
{
    ULong value = 0;
    if (offset + width <= n_bytes && offset + width <= JM_DRIVER_STRUCT_BYTES)
        VG_(memcpy)(&value, bytes + offset, width);
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
    *is_unknown = result == -VKI_ENOTTY;
    return result == 0;
}

// ---- which device --------------------------------------------------------------------------------------------

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
    {"/dev/nvidia[0-9]*", FILE_RM_DEVICE},
    {"/dev/nvidia-uvm", FILE_UVM},
};

static Bool find_device(const HChar *path, FileType *type)
{
    for (UInt i = 0; i < sizeof devices / sizeof devices[0]; i++) {
        if (jm_text_matches(devices[i].path, path)) {
            *type = devices[i].type;
            return True;
        }
    }
    return False;
}

// By the path that was opened, or where the kernel says that it led.
static void opened(ThreadId tid, Addr path_address, UWord fd)
{
    HChar path[64], link[32];
    FileType type;
    if (!jm_read_string(path_address, path, sizeof path))
        return;
    Bool is_device = find_device(path, &type);
    if (!is_device && (VG_(strncmp)(path, "/dev/", 5) == 0 || VG_(strstr)(path, "nv") != NULL)) {
        VG_(snprintf)(link, sizeof link, "/proc/self/fd/%lu", fd);
        SSizeT n = VG_(readlink)(link, path, sizeof path - 1);
        path[n > 0 ? n : 0] = 0;
        is_device = find_device(path, &type);
    }
    if (is_device)
        jm_driver_fd_set(tid, fd, jm_driver_file_new(type));
}

// ---- descriptors that come in a message ----------------------------------------------------------------------

// What is in a socket of the program's own, sent and not yet received, keeps its buffer alive like a descriptor.
typedef struct {
    DriverFile *file;
    UWord socket;
    ThreadId sender; // while the call is under way
} Sent;

static XArray *sent;

static void sent_ends(ThreadId tid, Word i)
{
    DriverFile *file = ((Sent *)VG_(indexXA)(sent, i))->file;
    VG_(removeIndexXA)(sent, i);
    jm_driver_file_release(tid, file);
}

static void one_sent(ThreadId tid, UWord socket, UInt fd)
{
    DriverFile *file = jm_driver_fd(fd);
    if (!file)
        return;
    if (!sent)
        sent = VG_(newXA)(VG_(malloc), "jm.driver", VG_(free), sizeof(Sent));
    Sent fresh = {file, socket, tid};
    jm_driver_file_hold(file);
    VG_(addToXA)(sent, &fresh);
}

static void one_received(ThreadId tid, UWord socket, UInt fd)
{
    DriverFile *file = jm_driver_file_behind(fd);
    if (!file)
        return;
    jm_driver_fd_set(tid, fd, file);
    for (Word i = 0; sent && i < VG_(sizeXA)(sent); i++) {
        if (((Sent *)VG_(indexXA)(sent, i))->file == file) {
            sent_ends(tid, i);
            return;
        }
    }
}

// Calls `use` with each descriptor in a message.
static void each_in_message(ThreadId tid, UWord socket, Addr message, void (*use)(ThreadId tid, UWord socket, UInt fd))
{
    UWord control, control_bytes;
    // struct msghdr: name, name's length, vectors, their number, control, its length
    if (!jm_read_word(message + 32, &control) || !jm_read_word(message + 40, &control_bytes))
        return;
    // struct cmsghdr: length, level, type; then the data, and padding to whole words
    for (UWord at = 0; control && at + 16 <= control_bytes;) {
        UWord bytes;
        UInt level, type, fd;
        if (!jm_read_word(control + at, &bytes) || !jm_read_uint(control + at + 8, &level) ||
            !jm_read_uint(control + at + 12, &type) || bytes < 16 || bytes > control_bytes - at)
            return;
        for (UWord i = 16; level == VKI_SOL_SOCKET && type == SCM_RIGHTS && i + 4 <= bytes; i += 4)
            if (jm_read_uint(control + at + i, &fd))
                use(tid, socket, fd);
        at += (bytes + sizeof(UWord) - 1) & ~(sizeof(UWord) - 1);
    }
}

// To itself: what is sent to another process is that process's from then on.
static Bool is_own_socket(UWord socket)
{
    struct {
        Int pid, uid, gid;
    } peer;
    UInt bytes = sizeof peer;
    return jm_kernel_call(__NR_getsockopt, socket, VKI_SOL_SOCKET, SO_PEERCRED, (UWord)&peer, (UWord)&bytes) == 0 &&
           peer.pid == VG_(getpid)();
}

static void before_send(ThreadId tid, const UWord *args)
{
    if (is_own_socket(args[0]))
        each_in_message(tid, args[0], args[1], one_sent);
}

static void after_send(ThreadId tid, Bool has_failed)
{
    for (Word i = VG_(sizeXA)(sent) - 1; i >= 0; i--) {
        Sent *s = VG_(indexXA)(sent, i);
        if (s->sender != tid)
            continue;
        s->sender = VG_INVALID_THREADID;
        if (has_failed)
            sent_ends(tid, i);
    }
}

static void socket_closes(ThreadId tid, UWord socket)
{
    for (Word i = sent ? VG_(sizeXA)(sent) - 1 : -1; i >= 0; i--)
        if (((Sent *)VG_(indexXA)(sent, i))->socket == socket)
            sent_ends(tid, i);
}

// ---- calls ---------------------------------------------------------------------------------------------------

static Pending *start(ThreadId tid, DriverFile *file)
{
    Pending **of_thread = JM_OF_THREAD(&pending, Pending *, tid);
    if (!*of_thread)
        *of_thread = VG_(calloc)("jm.driver", 1, sizeof **of_thread);
    Pending *p = *of_thread;
    p->is_active = True;
    p->file = file;
    return p;
}

static void before_ioctl(ThreadId tid, const UWord *args)
{
    DriverFile *file = jm_driver_fd(args[0]);
    if (!file)
        return;
    jm_driver_file_hold(file);
    DriverCall *call = &start(tid, file)->call;
    VG_(memset)(call, 0, sizeof *call);
    call->file = file;
    call->command = (UInt)args[1];
    call->argument = args[2];
    call->n_bytes = file->type == FILE_UVM ? 24 : (call->command >> 16) & 0x3fff; // linux/ioctl.h
    SizeT bytes = call->n_bytes < sizeof call->in ? call->n_bytes : sizeof call->in;
    if (bytes && !jm_read_bytes(call->argument, call->in, bytes))
        call->n_bytes = 0;
    if (file->type == FILE_NVMAP)
        jm_nvmap_before(tid, call);
}

static void after_ioctl(ThreadId tid, DriverCall *call, UWord fd, SysRes result)
{
    SizeT bytes = call->n_bytes < sizeof call->out ? call->n_bytes : sizeof call->out;
    if (bytes && !jm_read_bytes(call->argument, call->out, bytes)) {
        jm_driver_count(ODD_UNREADABLE);
        call->n_bytes = 0;
    }
    switch (call->file->type) {
    case FILE_NVMAP:
        jm_nvmap_after(tid, call, fd, result);
        break;
    case FILE_GPU_CONTROL:
    case FILE_GPU_SPACE:
    case FILE_GPU_CHANNEL:
    case FILE_GPU_TSG:
        jm_gpu_after(tid, call, result);
        break;
    case FILE_RM_CONTROL:
    case FILE_RM_DEVICE:
        jm_rm_after(tid, call, result);
        break;
    case FILE_UVM:
        jm_uvm_after(tid, call, result);
        break;
    default:
        break;
    }
}

static void mapped(ThreadId tid, DriverFile *file, Addr start_address, ULong bytes)
{
    DriverMemory *memory = file->type == FILE_BUFFER ? file->memory : jm_rm_attached(file);
    jm_driver_map_add(tid, own, start_address, bytes, file, memory);
}

static void remapped(ThreadId tid, Addr from, ULong old_bytes, Addr to, ULong new_bytes)
{
    ULong kept = old_bytes < new_bytes ? old_bytes : new_bytes;
    jm_driver_map_remove(tid, own, from + kept, old_bytes - kept);
    if (from != to)
        jm_driver_map_move(tid, own, from, kept, to);
}

void jm_driver_before_syscall(ThreadId tid, UInt number, const UWord *args)
{
    if (!jm_driver_n_fds || !jm_options.driver)
        return;
    DriverFile *file;
    switch (number) {
    case __NR_ioctl:
        before_ioctl(tid, args);
        break;
    case __NR_close:
        file = jm_driver_fd_take(args[0]);
        if (file)
            start(tid, file);
        else
            socket_closes(tid, args[0]);
        break;
    case __NR_sendmsg:
        before_send(tid, args);
        break;
    case __NR_mmap:
        file = args[3] & MAP_ANONYMOUS_MEMORY ? NULL : jm_driver_fd((UInt)args[4]);
        if (file) {
            jm_driver_file_hold(file);
            start(tid, file);
        }
        break;
    case __NR_execve:
    case __NR_execveat:
        jm_driver_fd_around_exec(False);
        break;
    default:
        break;
    }
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

static void after_close(ThreadId tid, UWord fd, DriverFile *file, SysRes result)
{
    struct vg_stat found;
    // The core refuses descriptors beyond its limit without asking the kernel.
    if (sr_isError(result) && !jm_driver_fd(fd) && VG_(fstat)(fd, &found) == 0)
        jm_driver_fd_set(tid, fd, file);
    jm_driver_file_release(tid, file);
}

static void duplicated(ThreadId tid, UWord from, UWord to)
{
    DriverFile *file = jm_driver_fd(from);
    if (from == to)
        return;
    if (file)
        jm_driver_fd_set(tid, to, file);
    else if ((file = jm_driver_fd_take(to)))
        jm_driver_file_release(tid, file);
}

// A call that may concern descriptors or mappings that are there.
static void after_other(ThreadId tid, UInt number, const UWord *args, UWord result)
{
    switch (number) {
    case __NR_dup:
#ifdef __NR_dup2
    case __NR_dup2:
#endif
    case __NR_dup3:
        duplicated(tid, args[0], result);
        break;
    case __NR_fcntl:
        if (args[1] == DUP_FD || args[1] == DUP_FD_CLOEXEC)
            duplicated(tid, args[0], result);
        break;
    case __NR_close_range:
        if (!(args[2] & CLOSE_RANGE_CLOEXEC))
            jm_driver_fds_check(tid, (UInt)args[0], (UInt)args[1]);
        break;
    case __NR_recvmsg:
        each_in_message(tid, args[0], args[1], one_received);
        break;
    case __NR_recvmmsg:
        for (UWord i = 0; i < result; i++) // struct mmsghdr: a msghdr and a count
            each_in_message(tid, args[0], args[1] + i * 64, one_received);
        break;
    case __NR_mmap:
        jm_driver_map_remove(tid, own, result, args[1]);
        break;
    case __NR_munmap:
        jm_driver_map_remove(tid, own, args[0], VG_PGROUNDUP(args[1]));
        break;
    case __NR_mremap:
        remapped(tid, args[0], VG_PGROUNDUP(args[1]), result, VG_PGROUNDUP(args[2]));
        break;
    default:
        break;
    }
}

void jm_driver_after_syscall(ThreadId tid, UInt number, const UWord *args, SysRes result)
{
    if (!jm_options.driver)
        return;
    Pending *p = pending_of(tid);
    if (p && p->is_active) {
        p->is_active = False;
        if (number == __NR_close) {
            after_close(tid, args[0], p->file, result);
            return;
        }
        if (number == __NR_ioctl)
            after_ioctl(tid, &p->call, args[0], result);
        else if (number == __NR_mmap && !sr_isError(result))
            mapped(tid, p->file, sr_Res(result), VG_PGROUNDUP(args[1]));
        jm_driver_file_release(tid, p->file);
        return;
    }
    if (number == __NR_sendmsg && sent)
        after_send(tid, sr_isError(result));
    if (number == __NR_execve || number == __NR_execveat)
        jm_driver_fd_around_exec(True); // or it would not have come back
    if (sr_isError(result))
        return;
    switch (number) {
#ifdef __NR_open
    case __NR_open:
        opened(tid, args[0], sr_Res(result));
        break;
#endif
    case __NR_openat:
    case __NR_openat2:
        opened(tid, args[1], sr_Res(result));
        break;
    default:
        if (jm_driver_n_fds || jm_driver_map_count(own))
            after_other(tid, number, args, sr_Res(result));
        break;
    }
}

// ---- the tool's life -----------------------------------------------------------------------------------------

void jm_driver_init(void)
{
    own = jm_driver_map_new();
    // The core's warnings about ioctls that it does not know are about checks that are not done here.
    if (jm_options.driver)
        VG_(clo_sim_hints) |= JM_LAX_IOCTLS;
    jm_nvmap_init();
    jm_gpu_init();
    jm_rm_init();
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
    static ULong told[N_ODD];
    for (UInt i = 0; i < N_ODD; i++)
        if (counts[i] != told[i])
            jm_trace_counter(odd_names[i], told[i] = counts[i]);
    static UInt told_channels, told_spaces;
    UInt n = jm_driver_n_files(FILE_GPU_CHANNEL);
    if (n != told_channels)
        jm_trace_counter("driver-channels", told_channels = n);
    n = jm_driver_n_files(FILE_GPU_SPACE);
    if (n != told_spaces)
        jm_trace_counter("driver-address-spaces", told_spaces = n);
    jm_driver_memory_write_counters();
    jm_rm_write_counters();
}

void jm_driver_stats(void)
{
    jm_driver_files_stats();
    jm_driver_maps_stats();
    jm_driver_memory_stats();
}
