// SPDX-License-Identifier: GPL-2.0-or-later
//
// Code that the program makes at run time, for which there is no unwind table: with a frame pointer and without. No
// cache needs to be told of it under Valgrind, which does not know how in an emulator.

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__x86_64__)
static const unsigned char with_frame_pointer[] = {
    0x55, 0x48, 0x89, 0xe5, // push %rbp; mov %rsp, %rbp
    0x48, 0x83, 0xec, 0x40, // sub $64, %rsp
    0xff, 0xd7, 0xc9, 0xc3, // call *%rdi; leave; ret
};
static const unsigned char without[] = {
    0x48, 0x83, 0xec, 0x48, 0xff, 0xd7, // sub $72, %rsp; call *%rdi
    0x48, 0x83, 0xc4, 0x48, 0xc3,       // add $72, %rsp; ret
};
#else
static const unsigned with_frame_pointer[] = {
    0xa9bb7bfd, 0x910003fd, // stp x29, x30, [sp, #-80]!; mov x29, sp
    0xd63f0000, 0xa8c57bfd, // blr x0; ldp x29, x30, [sp], #80
    0xd65f03c0,             // ret
};
static const unsigned without[] = {
    0xd10143ff, 0xf9001bfe, 0xf90017fd, // sub sp, sp, #80; str x30, [sp, #48]; str x29, [sp, #40]
    0xd280003d, 0xd63f0000,             // mov x29, #1; blr x0
    0xf94017fd, 0xf9401bfe, 0x910143ff, // ldr x29, [sp, #40]; ldr x30, [sp, #48]; add sp, sp, #80
    0xd65f03c0,                         // ret
};
#endif

typedef void (*Code)(void (*callee)(void));

static __attribute__((noinline)) void first(void)
{
    free(malloc(100));
    __asm__ volatile("");
}

static __attribute__((noinline)) void second(void)
{
    free(malloc(200));
    __asm__ volatile("");
}

static __attribute__((noinline)) void outer(Code code, void (*callee)(void))
{
    code(callee);
    __asm__ volatile("");
}

int main(void)
{
    char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(p, with_frame_pointer, sizeof with_frame_pointer);
    memcpy(p + 256, without, sizeof without);
    outer((Code)(void *)p, first);
    outer((Code)(void *)(p + 256), second);
    return 0;
}
