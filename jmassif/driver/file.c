// SPDX-License-Identifier: GPL-2.0-or-later
//
// Files of the driver and their descriptors; see file.h. Files count references like the kernel's: a buffer outlives
// its descriptor while a handle or a mapping refers to it. Descriptors are few, but looked up at every system call that
// takes one, so a hash table has them by number.

#include "driver/file.h"
#include "base/kernel.h"
#include "base/stats.h"

typedef struct Descriptor {
    struct Descriptor *next; // VgHashNode
    UWord key;               // VgHashNode: the number
    DriverFile *file;
} Descriptor;

static VgHashTable *descriptors;
static DriverFile *files;
static UInt n_files[N_FILE_TYPES];
static void (*ends[N_FILE_TYPES])(ThreadId tid, DriverFile *file);

UInt jm_driver_n_fds;

DriverFile *jm_driver_file_new(FileType type)
{
    DriverFile *file = VG_(calloc)("jm.driver.file", 1, sizeof *file);
    file->type = type;
    file->next = files;
    if (files)
        files->previous = file;
    files = file;
    n_files[type]++;
    return file;
}

void jm_driver_file_hold(DriverFile *file)
{
    file->n_references++;
}

void jm_driver_file_release(ThreadId tid, DriverFile *file)
{
    tl_assert(file->n_references > 0);
    if (--file->n_references)
        return;
    if (ends[file->type])
        ends[file->type](tid, file);
    if (file->next)
        file->next->previous = file->previous;
    if (file->previous)
        file->previous->next = file->next;
    else
        files = file->next;
    n_files[file->type]--;
    VG_(free)(file);
}

void jm_driver_file_on_end(FileType type, void (*end)(ThreadId tid, DriverFile *file))
{
    ends[type] = end;
}

// ---- descriptors ---------------------------------------------------------------------------------------------

DriverFile *jm_driver_fd(UWord fd)
{
    Descriptor *d = descriptors ? VG_(HT_lookup)(descriptors, fd) : NULL;
    return d ? d->file : NULL;
}

// Identifies a buffer behind another descriptor. Kernels before 5.3 give all buffers one inode.
static void remember_inode(UWord fd, DriverFile *file)
{
    struct vg_stat found;
    if (file->type != FILE_BUFFER || file->inode || VG_(fstat)(fd, &found) != 0)
        return;
    file->device = found.dev;
    file->inode = found.ino;
}

void jm_driver_fd_set(ThreadId tid, UWord fd, DriverFile *file)
{
    jm_driver_file_hold(file);
    remember_inode(fd, file);
    DriverFile *before = jm_driver_fd_take(fd);
    if (before)
        jm_driver_file_release(tid, before);
    if (!descriptors)
        descriptors = VG_(HT_construct)("jm.driver.file");
    Descriptor *d = VG_(calloc)("jm.driver.file", 1, sizeof *d);
    d->key = fd;
    d->file = file;
    VG_(HT_add_node)(descriptors, d);
    jm_driver_n_fds++;
}

DriverFile *jm_driver_fd_take(UWord fd)
{
    Descriptor *d = descriptors ? VG_(HT_remove)(descriptors, fd) : NULL;
    if (!d)
        return NULL;
    DriverFile *file = d->file;
    VG_(free)(d);
    jm_driver_n_fds--;
    return file;
}

// Descriptors above its limit that the core reserves for itself (m_main.c).
#define CORES_OWN 12

static struct vki_rlimit started_with, raised;

// Descriptors of the core and of the trace, which were above the core's limit until it was raised. The program must not
// close or replace them.
static UWord protected[4 * CORES_OWN];
static UInt n_protected;
static Int limit_for_all; // the core's limit, while it is lowered for one call; else 0

static void protect(UWord first, UWord end, UWord not_this)
{
    struct vg_stat found;
    for (UWord fd = first; fd < end && n_protected < sizeof protected / sizeof protected[0]; fd++)
        if (fd != not_this && VG_(fstat)(fd, &found) == 0 && !jm_driver_fd(fd))
    protected[n_protected++] = fd;
}

static Bool is_protected(UWord fd)
{
    for (UInt i = 0; i < n_protected; i++)
        if (protected[i] == (UInt)fd)
            return True;
    return False;
}

void jm_driver_fd_allow(UWord fd)
{
    static Bool has_failed;
    struct vki_rlimit limit;
    if (fd < (UWord)VG_(fd_hard_limit) || has_failed || VG_(getrlimit)(VKI_RLIMIT_NOFILE, &limit) != 0)
        return;
    // At most 2^20, since a program may close every descriptor up to the limit, one by one.
    UWord most = limit.rlim_max < 1 << 20 ? limit.rlim_max : 1 << 20;
    raised = (struct vki_rlimit){most, limit.rlim_max};
    if (fd + CORES_OWN < most && VG_(setrlimit)(VKI_RLIMIT_NOFILE, &raised) == 0) {
        if (!started_with.rlim_cur)
            started_with = limit;
        protect(VG_(fd_hard_limit), limit.rlim_cur, fd);
        VG_(fd_hard_limit) = most - CORES_OWN;
        return;
    }
    has_failed = True;
    VG_(umsg)
    ("jmassif: this board gives buffers the descriptors 1024 and up, and the limit of open files is too low for\n"
     "jmassif: Valgrind to let the program map and close them; run first:  ulimit -n 65536\n");
}

// The core refuses descriptors beyond its limit, so the limit is lowered during a call that would hit a protected one.
static Bool hits_protected(UInt number, const UWord *args)
{
    switch (number) {
    case __NR_close:
        return is_protected(args[0]);
#ifdef __NR_dup2
    case __NR_dup2:
#endif
    case __NR_dup3:
        return is_protected(args[1]);
    case __NR_close_range:
        return n_protected && (UInt)args[1] >= protected[0];
    default:
        return False;
    }
}

void jm_driver_fd_before_syscall(UInt number, const UWord *args)
{
    if (!started_with.rlim_cur)
        return;
    if (number == __NR_execve || number == __NR_execveat)
        VG_(setrlimit)(VKI_RLIMIT_NOFILE, &started_with);
    if (hits_protected(number, args)) {
        limit_for_all = VG_(fd_hard_limit);
        VG_(fd_hard_limit) = protected[0];
    }
}

// Closes the part of a close_range that the lowered limit kept the core from closing.
static void close_between(UInt first, UInt last, UWord flags)
{
    if (last >= (UInt)VG_(fd_hard_limit))
        last = VG_(fd_hard_limit) - 1;
    UWord from = first > protected[0] ? first : protected[0];
    for (UInt i = 0; i <= n_protected; i++) {
        UWord to = i < n_protected ? protected[i] : (UWord)last + 1;
        if (to > (UWord)last + 1)
            to = (UWord)last + 1;
        if (from < to)
            jm_kernel_call(__NR_close_range, from, to - 1, flags, 0, 0);
        if (i < n_protected && protected[i] >= from)
            from = protected[i] + 1;
    }
}

void jm_driver_fd_after_syscall(UInt number, const UWord *args, Bool has_failed)
{
    if (!started_with.rlim_cur)
        return;
    if (number == __NR_execve || number == __NR_execveat)
        VG_(setrlimit)(VKI_RLIMIT_NOFILE, &raised); // an exec returns only if it failed
    if (!limit_for_all)
        return;
    VG_(fd_hard_limit) = limit_for_all;
    limit_for_all = 0;
    if (number == __NR_close_range && (!has_failed || (UInt)args[0] >= protected[0]))
        close_between((UInt)args[0], (UInt)args[1], args[2]);
}

void jm_driver_fds_check(ThreadId tid, UWord first, UWord last)
{
    UInt n;
    VgHashNode **all = descriptors ? VG_(HT_to_array)(descriptors, &n) : NULL;
    if (!all)
        return;
    for (UInt i = 0; i < n; i++) {
        struct vg_stat found;
        UWord fd = all[i]->key;
        if (fd >= first && fd <= last && VG_(fstat)(fd, &found) != 0)
            jm_driver_file_release(tid, jm_driver_fd_take(fd));
    }
    VG_(free)(all);
}

DriverFile *jm_driver_file_behind(UWord fd)
{
    struct vg_stat found;
    DriverFile *same = NULL;
    if (VG_(fstat)(fd, &found) != 0)
        return NULL;
    for (DriverFile *file = files; file; file = file->next) {
        if (file->type != FILE_BUFFER || file->inode != found.ino || file->device != found.dev || !file->inode)
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

void jm_driver_files_stats(void)
{
    UInt n = 0;
    for (FileType type = 0; type < N_FILE_TYPES; type++)
        n += n_files[type];
    jm_stats_row("jm.driver.file", "files of the driver", n, n * sizeof(DriverFile));
    jm_stats_row("jm.driver.file", "descriptors of them", jm_driver_n_fds, jm_driver_n_fds * sizeof(Descriptor));
}
