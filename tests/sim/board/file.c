/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is handed out. A process' descriptor is known by the inode behind it, which is a device's or a buffer's alone.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "board.h"

enum { N_CHAINS = 1024 };

struct file *files;
static struct file *chains[N_CHAINS];
static dev_t our_device; /* memfds are all on one */

static const char *const NAMES[] = {
    [NVMAP] = "nvmap",       [GPU_CTRL] = "nvgpu-ctrl", [GPU_AS] = "nvgpu-as",  [GPU_CHANNEL] = "nvgpu-channel",
    [GPU_TSG] = "nvgpu-tsg", [GPU_OTHER] = "nvgpu",     [RM_CTL] = "nvidiactl", [RM_GPU] = "nvidia0",
    [UVM] = "nvidia-uvm",    [BOARD] = "board",         [DMABUF] = "dmabuf",    [FOREIGN] = "foreign-dmabuf",
    [CLOSED] = "closed",
};

struct file *file_new(enum device device, uint64_t bytes)
{
    struct stat status;
    int master = memfd_create(NAMES[device], MFD_CLOEXEC);
    if (master < 0)
        return NULL;
    struct file *file = calloc(1, sizeof *file);
    if (!file || ftruncate(master, (off_t)bytes) != 0 || fstat(master, &status) != 0) {
        close(master);
        free(file);
        return NULL;
    }
    our_device = status.st_dev;
    file->device = device;
    file->master = master;
    file->inode = status.st_ino;
    file->next = files;
    files = file;
    file->next_same = chains[file->inode % N_CHAINS];
    chains[file->inode % N_CHAINS] = file;
    return file;
}

void file_delete(struct file *file)
{
    struct file **link = &chains[file->inode % N_CHAINS];
    while (*link != file)
        link = &(*link)->next_same;
    *link = file->next_same;
    link = &files;
    while (*link != file)
        link = &(*link)->next;
    *link = file->next;
    close(file->master);
    free(file);
}

struct file *file_of(pid_t tid, int fd)
{
    char path[64];
    struct stat status;
    if (fd < 0)
        return NULL;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", tid, fd);
    if (stat(path, &status) != 0 || status.st_dev != our_device)
        return NULL;
    for (struct file *file = chains[status.st_ino % N_CHAINS]; file; file = file->next_same)
        if (file->inode == status.st_ino)
            return file;
    return NULL;
}

bool file_held(const struct file *file)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(file->master, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

int file_open(const struct file *file)
{
    char path[64];
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    snprintf(path, sizeof path, "/proc/self/fd/%d", file->master);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0 && fcntl(fd, F_OFD_SETLK, &lock) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}
