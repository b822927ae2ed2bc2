/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the supervisor does in a process that waits for an answer: reads and writes its memory, gives it descriptors. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "board.h"

bool client_read(pid_t tid, uint64_t from, void *to, size_t bytes)
{
    struct iovec ours = {to, bytes}, theirs = {(void *)(uintptr_t)from, bytes};
    return process_vm_readv(tid, &ours, 1, &theirs, 1, 0) == (ssize_t)bytes;
}

bool client_write(pid_t tid, uint64_t to, const void *from, size_t bytes)
{
    struct iovec ours = {(void *)(uintptr_t)from, bytes}, theirs = {(void *)(uintptr_t)to, bytes};
    return process_vm_writev(tid, &ours, 1, &theirs, 1, 0) == (ssize_t)bytes;
}

/* A path may end just before a page that is not there. */
bool client_read_path(pid_t tid, uint64_t from, char *to, size_t bytes)
{
    size_t first = PAGE_BYTES - from % PAGE_BYTES;
    struct iovec ours = {to, bytes};
    struct iovec theirs[] = {{(void *)(uintptr_t)from, bytes}, {(void *)(uintptr_t)(from + first), 0}};
    if (first < bytes) {
        theirs[0].iov_len = first;
        theirs[1].iov_len = bytes - first;
    }
    ssize_t n = process_vm_readv(tid, &ours, 1, theirs, 2, 0);
    return n > 0 && memchr(to, '\0', (size_t)n);
}

static uint64_t status_number(pid_t tid, const char *key)
{
    char path[64], line[256];
    uint64_t number = 0;
    snprintf(path, sizeof path, "/proc/%d/status", tid);
    FILE *status = fopen(path, "re");
    while (status && fgets(line, sizeof line, status))
        if (strncmp(line, key, strlen(key)) == 0) {
            number = strtoull(line + strlen(key), NULL, 10);
            break;
        }
    if (status)
        fclose(status);
    return number;
}

pid_t client_process(pid_t tid)
{
    return (pid_t)status_number(tid, "Tgid:");
}

uint64_t client_private_bytes(pid_t process)
{
    return (status_number(process, "RssAnon:") + status_number(process, "RssFile:")) << 10;
}

static uint64_t overlap(struct extent a, struct extent b)
{
    uint64_t from = a.from > b.from ? a.from : b.from, to = a.to < b.to ? a.to : b.to;
    return from < to ? to - from : 0;
}

/* Addresses that map the file, a memfd, but for those in `exclude`, which do not overlap each other. The kernel joins
 * neighbours. What is not a memfd may have its inode: other file systems' files, System V memory. */
uint64_t client_mapped(pid_t tid, uint64_t inode, const struct extent *exclude, size_t n_exclude)
{
    char path[64], *line = NULL;
    size_t room = 0;
    uint64_t mapped = 0;
    snprintf(path, sizeof path, "/proc/%d/maps", tid);
    FILE *maps = fopen(path, "re");
    while (maps && getline(&line, &room, maps) > 0) {
        unsigned long from, to, its_inode;
        int name = 0;
        if (sscanf(line, "%lx-%lx %*s %*s %*s %lu %n", &from, &to, &its_inode, &name) != 3 || its_inode != inode ||
            strncmp(line + name, "/memfd:", 7) != 0)
            continue;
        mapped += to - from;
        for (size_t i = 0; i < n_exclude; i++)
            mapped -= overlap((struct extent){from, to}, exclude[i]);
    }
    free(line);
    if (maps)
        fclose(maps);
    return mapped;
}

static bool fd_is_free(pid_t tid, int fd)
{
    char path[64];
    struct stat status;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", tid, fd);
    if (lstat(path, &status) != 0)
        return true;
    struct file *file = file_of(tid, fd);
    return file && file->device == CLOSED;
}

static int add_fd(const struct call *call, int ours, int theirs, bool close_on_exec)
{
    struct seccomp_notif_addfd add = {
        .id = call->id,
        .srcfd = (uint32_t)ours,
        .newfd = theirs < 0 ? 0 : (uint32_t)theirs,
        .flags = theirs < 0 ? 0 : SECCOMP_ADDFD_FLAG_SETFD,
        .newfd_flags = close_on_exec ? O_CLOEXEC : 0,
    };
    int fd = ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add);
    return fd < 0 ? -errno : fd;
}

int client_add(const struct call *call, int ours, bool close_on_exec)
{
    return add_fd(call, ours, -1, close_on_exec);
}

/* r32's driver takes numbers above the process' limit. The kernel has no such way for us, but the limit can be lifted
 * for the moment: what it lets in stays. */
static int add_fd_above_limit(const struct call *call, int ours, int theirs)
{
    struct rlimit limit, lifted;
    if (prlimit(call->tid, RLIMIT_NOFILE, NULL, &limit) != 0)
        return -errno;
    bool lift = (rlim_t)theirs >= limit.rlim_cur;
    lifted.rlim_cur = (rlim_t)theirs + 1;
    lifted.rlim_max = lifted.rlim_cur > limit.rlim_max ? lifted.rlim_cur : limit.rlim_max;
    if (lift && prlimit(call->tid, RLIMIT_NOFILE, &lifted, NULL) != 0)
        return -EMFILE;
    int fd = add_fd(call, ours, theirs, true);
    if (lift)
        prlimit(call->tid, RLIMIT_NOFILE, &limit, NULL);
    return fd;
}

/* The lowest free descriptor at or above `from`, if that is not 0; otherwise the lowest that the limit allows. */
int client_hand_out(const struct call *call, const struct file *file, int from, bool close_on_exec)
{
    int ours = file_open(file);
    if (ours < 0)
        return -ENFILE;
    int theirs = from;
    while (from && !fd_is_free(call->tid, theirs))
        theirs++;
    int fd = from ? add_fd_above_limit(call, ours, theirs) : add_fd(call, ours, -1, close_on_exec);
    close(ours);
    return fd;
}

/* No system call closes a descriptor in another process, so it becomes one of a file of no use, and its number counts
 * as free from then on: the program is told so when it uses it, by notify.c. */
int client_close(const struct call *call, int fd)
{
    static struct file *nothing;
    char path[64];
    struct stat status;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", call->tid, fd);
    if (fd < 0 || lstat(path, &status) != 0)
        return -EBADF;
    struct file *file = file_of(call->tid, fd);
    if (file && file->device == CLOSED)
        return -EBADF;
    if (!nothing)
        nothing = file_new(CLOSED, 0);
    int ours = nothing ? dup(nothing->master) : -1;
    if (ours < 0)
        return -ENFILE;
    int result = add_fd_above_limit(call, ours, fd);
    close(ours);
    return result < 0 ? result : 0;
}

uint32_t get32(const struct call *call, size_t offset)
{
    uint32_t value;
    memcpy(&value, call->data + offset, sizeof value);
    return value;
}

uint64_t get64(const struct call *call, size_t offset)
{
    uint64_t value;
    memcpy(&value, call->data + offset, sizeof value);
    return value;
}

void put32(struct call *call, size_t offset, uint32_t value)
{
    memcpy(call->data + offset, &value, sizeof value);
}

void put64(struct call *call, size_t offset, uint64_t value)
{
    memcpy(call->data + offset, &value, sizeof value);
}
