// SPDX-License-Identifier: GPL-2.0-or-later
//
// A stack whose outer part is unmapped between two allocations from the same frame of it. (x86-64)

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { SIZE = 1 << 18 };

static jmp_buf back;
static void *inside;

static __attribute__((noinline)) void note(void)
{
    inside = __builtin_return_address(0);
}

// Its return address lies far above its stack pointer.
static __attribute__((noinline)) void large_frame(void)
{
    volatile char room[SIZE / 2];
    room[0] = 1;
    note();
    room[1] = 1;
}

static __attribute__((noinline)) void allocate(void)
{
    free(malloc(100));
    longjmp(back, 1);
}

// As if large_frame() had called allocate(), and itself.
static __attribute__((noinline)) void call_on(char *stack)
{
    if (!setjmp(back))
        __asm__ volatile("mov %0, %%rsp\n jmp *%1" : : "r"(stack), "r"((void (*)(void))allocate));
}

int main(void)
{
    char *stack = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    large_frame();
    for (int i = 0; i < SIZE; i += sizeof inside)
        memcpy(stack + i, &inside, sizeof inside);
    for (int i = 0; i < 2; i++)
        call_on(stack + SIZE / 4 - 8);
    munmap(stack + SIZE / 4 + 4096, 3 * SIZE / 4 - 4096);
    call_on(stack + SIZE / 4 - 8);
    return 0;
}
