// SPDX-License-Identifier: GPL-2.0-or-later
//
// usage: unwind_garbage N: N times a stack of random words, among them addresses of code, of the stack itself and of
// what lies beyond it, from which code without an unwind table allocates.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void on_garbage(void *stack, uint64_t frame_pointer);
#if defined(__x86_64__)
__asm__(".text\n .globl on_garbage\n .type on_garbage, @function\n"
        "on_garbage: push %rbp\n push %rbx\n mov %rsp, %rbx\n mov %rdi, %rsp\n mov %rsi, %rbp\n mov $64, %edi\n"
        "call malloc@PLT\n mov %rax, %rdi\n call free@PLT\n mov %rbx, %rsp\n pop %rbx\n pop %rbp\n ret\n"
        ".size on_garbage, . - on_garbage\n");
#else
__asm__(".text\n .globl on_garbage\n .type on_garbage, %function\n"
        "on_garbage: stp x29, x30, [sp, #-32]!\n str x19, [sp, #16]\n mov x19, sp\n mov sp, x0\n mov x29, x1\n mov w0, "
        "#64\n"
        "bl malloc\n bl free\n mov sp, x19\n ldr x19, [sp, #16]\n ldp x29, x30, [sp], #32\n ret\n"
        ".size on_garbage, . - on_garbage\n");
#endif

static uint64_t state = 88172645463325252u;

// xorshift64 (Marsaglia)
static uint64_t next(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

int main(int n, char **args)
{
    enum { SIZE = 65536 };
    char *stack = mmap(NULL, SIZE + 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(stack + SIZE, 4096, PROT_NONE);
    char *code[] = {(char *)main, (char *)qsort, (char *)printf, (char *)malloc, (char *)strtol};
    for (int i = 0; i < atoi(args[1]); i++) {
        uint64_t *words = (uint64_t *)stack;
        for (int w = 0; w < SIZE / 8; w++) {
            uint64_t r = next();
            switch (r >> 61) {
            case 0:
            case 1:
                words[w] = (uint64_t)(code[r % 5] + (r >> 8) % 4096);
                break;
            case 2:
                words[w] = (uint64_t)(code[1 + r % 4] + (r >> 8) % 1000000);
                break;
            case 3:
                words[w] = (uint64_t)(stack + r % (SIZE + 8192));
                break;
            case 4:
                words[w] = (uint64_t)&words[w + r % 16];
                break;
            case 5:
                words[w] = r % 100;
                break;
            case 6:
                words[w] = -(r % 100);
                break;
            default:
                words[w] = r;
            }
        }
        uint64_t size = (SIZE - 1024 * (1 + next() % 32)) & ~15u;
        on_garbage(stack + size, next() % 3 ? (uint64_t)(stack + next() % SIZE) : next());
    }
    return 0;
}
