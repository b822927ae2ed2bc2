/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which system calls the kernel brings to the supervisor, and the loop that answers them. The filter looks at numbers
 * only, so that the rest of a program runs at its own speed: what is brought here and is none of ours goes on as if
 * nothing had been. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "board.h"

/* Newer than the headers of the oldest distribution that we build on. */
#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif
#define SET_FLAGS    SECCOMP_IOW(4, __u64)
#define SYNC_WAKE_UP 1ULL

#ifdef __aarch64__
#define ARCH AUDIT_ARCH_AARCH64
#else
#define ARCH AUDIT_ARCH_X86_64
#endif

enum { FIRST_NVMAP_FD = 1024, MAX_FILTER = 128 };

int listener = -1;

static struct sock_filter filter[MAX_FILTER];
static unsigned short n_filter;

static void emit(uint16_t code, uint32_t k, uint8_t if_true, uint8_t if_false)
{
    filter[n_filter++] = (struct sock_filter){code, if_true, if_false, k};
}

static void load(size_t offset)
{
    emit(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static size_t argument(int i)
{
    return offsetof(struct seccomp_data, args) + (size_t)i * 8;
}

static void answer(uint32_t action)
{
    emit(BPF_RET | BPF_K, action, 0, 0);
}

/* Brings the call here if the comparison holds. */
static void brought_if(uint16_t comparison, uint32_t k)
{
    emit(BPF_JMP | comparison | BPF_K, k, 0, 1);
    answer(SECCOMP_RET_USER_NOTIF);
}

/* What follows, up to system_call_end, is for one system call; the accumulator holds its number before and after. */
static unsigned short system_call(long number)
{
    emit(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 0);
    return n_filter;
}

static void system_call_end(unsigned short start)
{
    answer(SECCOMP_RET_ALLOW);
    filter[start - 1].jf = (uint8_t)(n_filter - start);
}

static void filter_make(void)
{
    unsigned short start;
    load(offsetof(struct seccomp_data, arch));
    emit(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
    answer(SECCOMP_RET_ALLOW);
    load(offsetof(struct seccomp_data, nr));

    brought_if(BPF_JEQ, SYS_openat);
#ifdef SYS_open
    brought_if(BPF_JEQ, SYS_open);
#endif
    start = system_call(SYS_ioctl);
    load(argument(1));
    brought_if(BPF_JEQ, 0x30000001); /* unified memory numbers its commands from 1, and these two */
    brought_if(BPF_JEQ, 0x30000002);
    emit(BPF_JMP | BPF_JGE | BPF_K, 0x100, 1, 0);
    answer(SECCOMP_RET_USER_NOTIF);
    emit(BPF_ALU | BPF_AND | BPF_K, 0xff00, 0, 0);
    for (const char *type = "NGAHTFJ"; *type; type++)
        brought_if(BPF_JEQ, (uint32_t)*type << 8);
    system_call_end(start);

    start = system_call(SYS_mmap); /* of a file, to share */
    load(argument(3));
    emit(BPF_ALU | BPF_AND | BPF_K, MAP_SHARED | MAP_ANONYMOUS, 0, 0);
    brought_if(BPF_JEQ, MAP_SHARED);
    system_call_end(start);

    /* A descriptor that r32's driver has closed must look closed. */
    static const long BY_DESCRIPTOR[] = {
        SYS_close, SYS_dup, SYS_dup3, SYS_fcntl,
#ifdef SYS_dup2
        SYS_dup2,
#endif
    };
    for (size_t i = 0; release == R32 && i < sizeof BY_DESCRIPTOR / sizeof *BY_DESCRIPTOR; i++) {
        start = system_call(BY_DESCRIPTOR[i]);
        load(argument(0));
        brought_if(BPF_JGE, FIRST_NVMAP_FD);
        system_call_end(start);
    }
    answer(SECCOMP_RET_ALLOW);
}

int listener_install(void)
{
    filter_make();
    struct sock_fprog program = {n_filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return -errno;
    /* Once we have read a call, only death may interrupt it: what we did for it could not be undone. */
    unsigned long flags = SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    long fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
    if (fd < 0 && errno == EINVAL)
        fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    return fd < 0 ? -errno : (int)fd;
}

struct answer {
    bool ours;
    long result; /* negative: an error */
};

static const struct answer NOT_OURS = {false, 0};

static struct answer answer_open_machine(const struct call *call, const char *path, uint64_t flags)
{
    int ours = machine_file(call, path);
    if (ours < 0)
        return NOT_OURS;
    int theirs = client_add(call, ours, flags & O_CLOEXEC);
    close(ours);
    return (struct answer){true, theirs};
}

static struct answer answer_open(const struct call *call, uint64_t path_address, uint64_t flags)
{
    char path[64];
    if (!client_read_path(call->tid, path_address, path, sizeof path))
        return NOT_OURS;
    enum device device = device_of(path);
    if (device == NO_DEVICE)
        return answer_open_machine(call, path, flags);
    struct file *file;
    long result = device_open(call, &file, device);
    if (result == 0) {
        result = client_hand_out(call, file, 0, flags & O_CLOEXEC);
        file->was_held = true;
        log_note("%d open %s = %ld", call->tid, path, result);
    }
    return (struct answer){true, result};
}

static struct answer answer_ioctl(struct call *call, int fd)
{
    static uint8_t data[16384];
    call->file = file_of(call->tid, fd);
    if (!call->file)
        return NOT_OURS;
    call->data = data;
    return (struct answer){true, call->file->device == CLOSED ? -EBADF : device_ioctl(call)};
}

static struct answer answer_mmap(struct call *call, const __u64 *arguments)
{
    call->file = file_of(call->tid, (int)arguments[4]);
    long result = call->file ? device_mmap(call, arguments[0], arguments[1], arguments[5]) : 0;
    return (struct answer){result != 0, result};
}

static struct answer answer_by_descriptor(const struct call *call, int fd)
{
    struct file *file = file_of(call->tid, fd);
    return (struct answer){file && file->device == CLOSED, -EBADF};
}

static struct answer answer_to(struct call *call, const struct seccomp_data *data)
{
    switch (data->nr) {
    case SYS_openat:
        return answer_open(call, data->args[1], data->args[2]);
#ifdef SYS_open
    case SYS_open:
        return answer_open(call, data->args[0], data->args[1]);
#endif
    case SYS_ioctl:
        call->command = (uint32_t)data->args[1];
        call->argument = data->args[2];
        return answer_ioctl(call, (int)data->args[0]);
    case SYS_mmap:
        return answer_mmap(call, data->args);
    default:
        return answer_by_descriptor(call, (int)data->args[0]);
    }
}

/* Before Linux 6.11 the last process under the filter keeps the listener until it is waited for. */
int listener_serve(int fd, pid_t child)
{
    struct pollfd waits[] = {{.fd = fd, .events = POLLIN},
                             {.fd = (int)syscall(SYS_pidfd_open, child, 0), .events = POLLIN}};
    int status = 0;
    listener = fd;
    ioctl(fd, SET_FLAGS, SYNC_WAKE_UP); /* where the kernel knows it, an answer costs half the time */
    for (;;) {
        if (poll(waits, 2, -1) < 0)
            continue; /* a signal */
        if (waits[1].revents && waitpid(child, &status, 0) == child) {
            close(waits[1].fd);
            waits[1].fd = -1; /* which poll passes over */
        }
        if (waits[0].revents & POLLHUP)
            break;
        if (!(waits[0].revents & POLLIN))
            continue;
        struct seccomp_notif notification;
        memset(&notification, 0, sizeof notification);
        if (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &notification) != 0)
            continue; /* who asked is dead */
        struct call call = {.id = notification.id, .tid = (pid_t)notification.pid};
        struct answer answer = answer_to(&call, &notification.data);
        struct seccomp_notif_resp response = {.id = notification.id};
        if (!answer.ours)
            response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
        else if (answer.result < 0)
            response.error = (int)answer.result;
        else
            response.val = answer.result;
        ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &response);
    }
    if (waits[1].fd >= 0)
        waitpid(child, &status, 0);
    return status;
}
