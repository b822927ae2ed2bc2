// SPDX-License-Identifier: GPL-2.0-or-later
//
// A coroutine, above whose stack lie return addresses of others.

#include <stdlib.h>
#include <ucontext.h>

static ucontext_t here, there;
static struct {
    char stack[65536];
    void *others[400];
} memory;

static __attribute__((noinline)) void *return_address(void)
{
    return __builtin_return_address(0);
}

static void allocate(int bytes)
{
    free(malloc(bytes));
    __asm__ volatile("");
}

static void coroutine(void)
{
    allocate(100);
    swapcontext(&there, &here);
}

int main(void)
{
    void *address = return_address();
    for (int i = 0; i < 400; i++)
        memory.others[i] = address;
    getcontext(&there);
    there.uc_stack.ss_sp = memory.stack;
    there.uc_stack.ss_size = sizeof memory.stack;
    there.uc_link = &here;
    makecontext(&there, coroutine, 0);
    swapcontext(&here, &there);
    return 0;
}
