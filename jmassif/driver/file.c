// SPDX-License-Identifier: GPL-2.0-or-later
//
// Files of the driver and their descriptors; see file.h. Files count references like the kernel's: a buffer outlives
// its descriptor while a handle or a mapping refers to it. Descriptors are few, but looked up at every system call that
// takes one, so a hash table has them by number.

#include "driver/file.h"
#include "base/kernel.h"
#include "base/list.h"
#include "base/map.h"
#include "host/host.h"

typedef struct Descriptor {
    struct Descriptor *next; // MapNode
    UWord key;               // MapNode: the number
    DriverFile *file;
} Descriptor;

static Map descriptors = JM_MAP("jm.driver.file");
static DriverFile *files;
static UInt n_files[N_FILE_TYPES];

UInt jm_driver_n_fds;

DriverFile *jm_driver_file_new(FileType type)
{
    DriverFile *file = host_alloc_zeroed("jm.driver.file", 1, sizeof *file);
    file->type = type;
    JM_LIST_ADD(files, file, next, previous);
    n_files[type]++;
    return file;
}

void jm_driver_file_hold(DriverFile *file)
{
    file->n_references++;
}

void jm_driver_file_release(ThreadId tid, DriverFile *file)
{
    jm_assert(file->n_references > 0);
    if (--file->n_references)
        return;
    if (jm_decoders[file->type].ended)
        jm_decoders[file->type].ended(tid, file);
    JM_LIST_REMOVE(files, file, next, previous);
    n_files[file->type]--;
    host_free(file);
}

DriverFile *jm_driver_next_file(const DriverFile *file, FileType type)
{
    DriverFile *next = file ? file->next : files;
    while (next && next->type != type)
        next = next->next;
    return next;
}

DriverFile *jm_driver_fd(UWord fd)
{
    Descriptor *d = jm_map_find(&descriptors, fd);
    return d ? d->file : NULL;
}

void jm_driver_fd_set(ThreadId tid, UWord fd, DriverFile *file)
{
    jm_driver_file_hold(file);
    FileStatus found;
    // To identify the buffer behind another descriptor. Kernels before 5.3 give all buffers one inode.
    if (file->type == FILE_BUFFER && !file->inode && jm_file_status(fd, &found)) {
        file->device = found.dev;
        file->inode = found.ino;
    }
    DriverFile *before = jm_driver_fd_take(fd);
    if (before)
        jm_driver_file_release(tid, before);
    Descriptor *d = host_alloc_zeroed("jm.driver.file", 1, sizeof *d);
    d->key = fd;
    d->file = file;
    jm_map_add(&descriptors, d);
    jm_driver_n_fds++;
}

DriverFile *jm_driver_fd_take(UWord fd)
{
    Descriptor *d = jm_map_remove(&descriptors, fd);
    if (!d)
        return NULL;
    DriverFile *file = d->file;
    host_free(d);
    jm_driver_n_fds--;
    return file;
}

void jm_driver_fds_check(ThreadId tid, UWord first, UWord last)
{
    for (Descriptor *d = jm_map_next(&descriptors, NULL), *next; d; d = next) {
        FileStatus found;
        UWord fd = d->key;
        next = jm_map_next(&descriptors, d);
        if (fd >= first && fd <= last && !jm_file_status(fd, &found))
            jm_driver_file_release(tid, jm_driver_fd_take(fd));
    }
}

DriverFile *jm_driver_file_behind(UWord fd)
{
    FileStatus found;
    DriverFile *same = NULL;
    if (!jm_file_status(fd, &found))
        return NULL;
    for (DriverFile *file = NULL; (file = jm_driver_next_file(file, FILE_BUFFER));) {
        if (file->inode != found.ino || file->device != found.dev || !file->inode)
            continue;
        if (same)
            return NULL; // the kernel gives all buffers one inode
        same = file;
    }
    return same;
}

UInt jm_driver_n_files(FileType type)
{
    return n_files[type];
}
