// SPDX-License-Identifier: GPL-2.0-or-later
//
// System calls, by the processor's own instruction: a host may have no C library, or one that the program replaces.

#pragma once

#include "host/types.h"

// Return the kernel's result; a negative one is -errno.
Long jm_kernel_call(UWord number, UWord a1, UWord a2, UWord a3, UWord a4, UWord a5);
Long jm_kernel_call6(UWord number, UWord a1, UWord a2, UWord a3, UWord a4, UWord a5, UWord a6);

Long jm_kernel_mmap(Addr address, SizeT bytes, UInt protection, UInt flags, Int fd, ULong offset);

// Return whether a call's result is -errno.
static inline Bool jm_is_error(Long result)
{
    return (UWord)result > ~(UWord)4095;
}

// Files. A negative result is -errno.
Int jm_open(const HChar *path, Int flags, UInt mode);
void jm_close(Int fd); // may be negative
Long jm_read(Int fd, void *to, SizeT bytes);
Long jm_read_at(Int fd, void *to, SizeT bytes, ULong offset);
Long jm_write(Int fd, const void *from, SizeT bytes);
Long jm_read_link(const HChar *path, HChar *to, SizeT bytes); // without a NUL

typedef struct {
    ULong dev, ino, size;
    UInt mode;      // S_ISREG and its kin
    ULong modified; // nanoseconds since 1970
} FileStatus;

Bool jm_file_status(Int fd, FileStatus *status);
Bool jm_path_status(const HChar *path, FileStatus *status);

Int jm_process_id(void);
Int jm_parent_id(void);
Int jm_thread_id(void);

// Limits of the process, RLIMIT_…; no limit is ~0.
typedef struct {
    ULong soft, hard;
} ProcessLimit;
Bool jm_limit(Int which, ProcessLimit *limit);
Bool jm_limit_set(Int which, const ProcessLimit *limit);

// Return whether writing a file up to this size would raise SIGXFSZ, which kills the program.
Bool jm_is_beyond_limit(ULong bytes);

// Return whether the word at the address can be read; False if a read would raise a signal.
Bool jm_kernel_can_read(Addr address);

// Release whole pages: anonymous or modified ones lose their content, unmodified file pages are read again at the next
// access.
void jm_kernel_let_go(Addr start, SizeT bytes);
