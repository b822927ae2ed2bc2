// SPDX-License-Identifier: GPL-2.0-or-later
//
// System calls by the processor's own instruction, for calls that the core does not offer to tools; see kernel.h.

#include "base/kernel.h"

Long jm_kernel_call(UWord number, UWord a1, UWord a2, UWord a3, UWord a4, UWord a5)
{
#if defined(VGA_amd64)
    Long result;
    register UWord r10 __asm__("r10") = a4;
    register UWord r8 __asm__("r8") = a5;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a1), "S"(a2), "d"(a3), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(VGA_arm64)
    register UWord x8 __asm__("x8") = number;
    register UWord x0 __asm__("x0") = a1;
    register UWord x1 __asm__("x1") = a2;
    register UWord x2 __asm__("x2") = a3;
    register UWord x3 __asm__("x3") = a4;
    register UWord x4 __asm__("x4") = a5;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
    return (Long)x0;
#else
    return -VKI_ENOSYS;
#endif
}

// rt_sigprocmask with the invalid `how` -1 changes nothing: the kernel first reads the eight bytes of the set (EFAULT
// if it cannot), then rejects -1.
Bool jm_kernel_can_read(Addr address)
{
    return jm_kernel_call(__NR_rt_sigprocmask, -1, address, 0, 8, 0) != -VKI_EFAULT;
}

#define MADV_DONTNEED 4 // asm-generic/mman-common.h

void jm_kernel_let_go(Addr start, SizeT bytes)
{
    jm_kernel_call(__NR_madvise, start, bytes, MADV_DONTNEED, 0, 0);
}
