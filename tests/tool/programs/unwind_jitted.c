// SPDX-License-Identifier: GPL-2.0-or-later
//
// Code that the program makes at run time, many frames of it, as a just-in-time compiler does: it comes and goes while
// the rest of the stack stays, is moved, unmapped, and replaced by other code at the same place. No cache needs to be
// told of it under Valgrind, which does not know how in an emulator.
//
//     unwind_jitted stacks           each of the stacks that its test knows
//     unwind_jitted generated N      N pairs of malloc and free below 15 frames of generated code, between two marks
//     unwind_jitted compiled N       likewise, below 15 of a C compiler's

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../bench/mark.h"

#define NOT_INLINED static __attribute__((noinline))

// Calls its first element with the rest.
typedef void (*Code)(void *const *chain);

#if defined(__x86_64__)
static const unsigned char framed[] = {
    0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x40, // push %rbp; mov %rsp, %rbp; sub $64, %rsp
    0x48, 0x89, 0xf8, 0x48, 0x83, 0xc7, 0x08,       // mov %rdi, %rax; add $8, %rdi
    0xff, 0x10, 0xc9, 0xc3,                         // call *(%rax); leave; ret
};
static const unsigned char bare[] = {
    0x55, 0x31, 0xed,                         // push %rbp; xor %ebp, %ebp
    0x48, 0x89, 0xf8, 0x48, 0x83, 0xc7, 0x08, // mov %rdi, %rax; add $8, %rdi
    0xff, 0x10, 0x5d, 0xc3,                   // call *(%rax); pop %rbp; ret
};
#else
static const unsigned framed[] = {
    0xa9bf7bfd, 0x910003fd, 0xd10103ff, // stp x29, x30, [sp, #-16]!; mov x29, sp; sub sp, sp, #64
    0xf8408401, 0xd63f0020,             // ldr x1, [x0], #8; blr x1
    0x910003bf, 0xa8c17bfd, 0xd65f03c0, // mov sp, x29; ldp x29, x30, [sp], #16; ret
};
static const unsigned bare[] = {
    0xa9bf7bfd, 0xd280003d, // stp x29, x30, [sp, #-16]!; mov x29, #1
    0xf8408401, 0xd63f0020, // ldr x1, [x0], #8; blr x1
    0xa8c17bfd, 0xd65f03c0, // ldp x29, x30, [sp], #16; ret
};
#endif

#define AT_ONCE 15
#define PAGE    4096

static char *map_code(void)
{
    return mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

NOT_INLINED void allocate(void)
{
    free(malloc(100));
    __asm__ volatile("");
}

// What a chain ends in: one for each thing that is tried.
#define END(name)                                                                                                      \
    NOT_INLINED void name(void *const *chain)                                                                          \
    {                                                                                                                  \
        allocate();                                                                                                    \
        __asm__ volatile("");                                                                                          \
    }
END(at_depth)
END(mixed)
END(before)
END(moved)
END(replaced)
END(rewritten)
END(elsewhere)

NOT_INLINED void enter(void *const *chain)
{
    ((Code)chain[0])(chain + 1);
    __asm__ volatile("");
}

NOT_INLINED void compiled(void *const *chain)
{
    volatile char room[48];
    room[0] = 0;
    ((Code)chain[0])(chain + 1);
    __asm__ volatile("");
}

// `n` times the code, then the end.
static void run(void *code, int n, void *end)
{
    void *chain[AT_ONCE + 1];
    for (int i = 0; i < n; i++)
        chain[i] = code;
    chain[n] = end;
    enter(chain);
}

// Code that is unmapped while it runs would not come back: the end leaves by exit.
static char *running;
NOT_INLINED void gone(void *const *chain)
{
    munmap(running, PAGE);
    allocate();
    exit(0);
}

static int try_stacks(void)
{
    char *code = map_code(), *other = map_code(), *stays = map_code();
    memcpy(code, framed, sizeof framed);
    memcpy(stays, framed, sizeof framed);
    memcpy(stays + 256, bare, sizeof bare);
    for (int i = 0; i < 300; i++)
        run(code, 1 + i % 5, at_depth);
    for (int i = 0; i < 3; i++)
        enter((void *[]){code, stays + 256, stays, stays + 256, stays + 256, mixed});

    run(code, 2, before);
    char *now = mremap(code, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, other);
    run(now, 2, moved);
    // In its old place, other code.
    code = mmap(code, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    memcpy(code, bare, sizeof bare);
    run(code, 3, replaced);
#if defined(__x86_64__)
    memset(code, 0xcc, PAGE);
#else // where caches would have to be told
    mmap(code, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
#endif
    memcpy(code, framed, sizeof framed);
    run(code, 4, rewritten);
    munmap(now, PAGE);
    run(stays, 1, elsewhere);

    running = code;
    run(code, 2, at_depth);
    run(code, 2, gone);
    return 1;
}

static int try_marked(void *code, int n)
{
    run(code, AT_ONCE, at_depth); // so that all is translated
    run(code, AT_ONCE, at_depth);
    getpgid(MARK);
    for (int i = 0; i < n; i++)
        run(code, AT_ONCE, at_depth);
    getpgid(MARK);
    return 0;
}

int main(int argc, char **argv)
{
    if (strcmp(argv[1], "stacks") == 0)
        return try_stacks();
    char *code = map_code();
    memcpy(code, framed, sizeof framed);
    return try_marked(strcmp(argv[1], "generated") == 0 ? code : (void *)compiled, atoi(argv[2]));
}
