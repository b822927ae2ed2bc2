/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A program with the runtime linked into it statically (nvcc's default), so that there is no libcudart
 * to be seen. The same source, compiled with -DAS_LIBRARY, makes a shared library that has the
 * runtime inside, and with -DLIBRARY_USER the program that uses that library. Prints "expect KIND
 * BYTES" for what is live at the end. */
#include "program.h"

enum { DEVICE_BYTES = 1000003, HOST_BYTES = 300007, POOL_BYTES = 700001 };

void use_runtime(void);

#ifndef LIBRARY_USER
NOINLINE void use_runtime(void)
{
    void *pointer;
    MUST(cudaMalloc(&pointer, 4096));
    MUST(cudaFree(pointer));
    MUST(cudaMalloc(&pointer, DEVICE_BYTES));
    MUST(cudaMallocHost(&pointer, HOST_BYTES));
    MUST(cudaMallocAsync(&pointer, POOL_BYTES, NULL));
}
#endif

#ifndef AS_LIBRARY
int main(void)
{
    use_runtime();
    printf("expect device %d\nexpect pinned %d\nexpect pool %d\n", DEVICE_BYTES, HOST_BYTES, POOL_BYTES);
    return 0;
}
#endif
