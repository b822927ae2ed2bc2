// SPDX-License-Identifier: GPL-2.0-or-later
//
// The instruction, and the calls; see kernel.h.

#include "base/kernel.h"

#include <asm/unistd.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

Long jm_kernel_call6(UWord number, UWord a1, UWord a2, UWord a3, UWord a4, UWord a5, UWord a6)
{
#if defined(__x86_64__)
    Long result;
    register UWord r10 __asm__("r10") = a4;
    register UWord r8 __asm__("r8") = a5;
    register UWord r9 __asm__("r9") = a6;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a1), "S"(a2), "d"(a3), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
#else
    register UWord x8 __asm__("x8") = number;
    register UWord x0 __asm__("x0") = a1;
    register UWord x1 __asm__("x1") = a2;
    register UWord x2 __asm__("x2") = a3;
    register UWord x3 __asm__("x3") = a4;
    register UWord x4 __asm__("x4") = a5;
    register UWord x5 __asm__("x5") = a6;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return (Long)x0;
#endif
}

Long jm_kernel_call(UWord number, UWord a1, UWord a2, UWord a3, UWord a4, UWord a5)
{
    return jm_kernel_call6(number, a1, a2, a3, a4, a5, 0);
}

Long jm_kernel_mmap(Addr address, SizeT bytes, UInt protection, UInt flags, Int fd, ULong offset)
{
    return jm_kernel_call6(__NR_mmap, address, bytes, protection, flags, fd, offset);
}

Int jm_open(const HChar *path, Int flags, UInt mode)
{
    return (Int)jm_kernel_call(__NR_openat, AT_FDCWD, (UWord)path, flags, mode, 0);
}

void jm_close(Int fd)
{
    if (fd >= 0)
        jm_kernel_call(__NR_close, fd, 0, 0, 0, 0);
}

Long jm_read(Int fd, void *to, SizeT bytes)
{
    return jm_kernel_call(__NR_read, fd, (UWord)to, bytes, 0, 0);
}

Long jm_read_at(Int fd, void *to, SizeT bytes, ULong offset)
{
    return jm_kernel_call(__NR_pread64, fd, (UWord)to, bytes, offset, 0);
}

Long jm_write(Int fd, const void *from, SizeT bytes)
{
    return jm_kernel_call(__NR_write, fd, (UWord)from, bytes, 0, 0);
}

Long jm_read_link(const HChar *path, HChar *to, SizeT bytes)
{
    return jm_kernel_call(__NR_readlinkat, AT_FDCWD, (UWord)path, (UWord)to, bytes, 0);
}

// The kernel fills the C library's struct stat on both processors.
static Bool is_status(Long result, const struct stat *found, FileStatus *status)
{
    if (result == 0)
        *status = (FileStatus){found->st_dev, found->st_ino, found->st_size, found->st_mode,
                               found->st_mtim.tv_sec * 1000000000ULL + found->st_mtim.tv_nsec};
    return result == 0;
}

Bool jm_file_status(Int fd, FileStatus *status)
{
    struct stat found;
    return is_status(jm_kernel_call(__NR_fstat, fd, (UWord)&found, 0, 0, 0), &found, status);
}

Bool jm_path_status(const HChar *path, FileStatus *status)
{
    struct stat found;
    return is_status(jm_kernel_call(__NR_newfstatat, AT_FDCWD, (UWord)path, (UWord)&found, 0, 0), &found, status);
}

Int jm_process_id(void)
{
    return (Int)jm_kernel_call(__NR_getpid, 0, 0, 0, 0, 0);
}

Int jm_parent_id(void)
{
    return (Int)jm_kernel_call(__NR_getppid, 0, 0, 0, 0, 0);
}

Int jm_thread_id(void)
{
    return (Int)jm_kernel_call(__NR_gettid, 0, 0, 0, 0, 0);
}

Bool jm_limit(Int which, ProcessLimit *limit)
{
    return jm_kernel_call(__NR_prlimit64, 0, which, 0, (UWord)limit, 0) == 0;
}

Bool jm_limit_set(Int which, const ProcessLimit *limit)
{
    return jm_kernel_call(__NR_prlimit64, 0, which, (UWord)limit, 0, 0) == 0;
}

Bool jm_is_beyond_limit(ULong bytes)
{
    ProcessLimit limit;
    return jm_limit(RLIMIT_FSIZE, &limit) && bytes > limit.soft;
}

// rt_sigprocmask with the invalid `how` -1 changes nothing: the kernel first reads the eight bytes of the set (EFAULT
// if it cannot), then rejects -1. NULL is no set, and no error.
Bool jm_kernel_can_read(Addr address)
{
    return address && jm_kernel_call(__NR_rt_sigprocmask, -1, address, 0, 8, 0) != -EFAULT;
}

void jm_kernel_let_go(Addr start, SizeT bytes)
{
    jm_kernel_call(__NR_madvise, start, bytes, MADV_DONTNEED, 0, 0);
}
