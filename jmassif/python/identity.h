// SPDX-License-Identifier: GPL-2.0-or-later
//
// The identity by which Python knows a thread: the pthread_self() that its states and its threading.Thread keep.

#ifndef JM_PYTHON_IDENTITY_H
#define JM_PYTHON_IDENTITY_H

// True if `id` identifies the thread with this register. On x86-64 the two are equal. On AArch64 the register points
// past the C library's thread record, and the size of the record varies by release (glibc 2.36: 1856 bytes); the
// records of two threads are at least a stack apart.
static inline Bool jm_python_is_identity(UWord id, Addr reg)
{
#if defined(__aarch64__)
    return id < reg && reg - id <= 8192;
#else
    return id == reg;
#endif
}

#endif
