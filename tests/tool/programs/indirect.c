// SPDX-License-Identifier: GPL-2.0-or-later
//
// Jumps that lead elsewhere than the time before: calls through pointers at fixed addresses, returns to many callers,
// over other frames and on other stacks, and a return address that is changed. Prints a sum of what was reached.

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

static unsigned long sum = 1;

static void reach(unsigned place)
{
    sum = sum * 6364136223846793005ul + place;
}

static void first(void)
{
    reach(1);
}
static void second(void)
{
    reach(2);
}
static void third(void)
{
    reach(3);
}

void (*volatile pointer)(void) = first;

static __attribute__((noinline)) unsigned from_many(unsigned n)
{
    reach(n);
    return n ? n + 1 : 0;
}

static __attribute__((noinline)) unsigned recurse(unsigned n)
{
    if (n == 0)
        return from_many(0);
    unsigned inner = n % 3 == 0 ? recurse(n - 1) + 1 : recurse(n - 1) * 2;
    return inner + (n & 1 ? from_many(n) : from_many(n + 1));
}

static jmp_buf out;

static __attribute__((noinline)) void leave_by_longjmp(unsigned n)
{
    if (n == 0)
        longjmp(out, 7);
    if (from_many(n))
        leave_by_longjmp(n - 1);
    reach(99);
}

static ucontext_t here, there;
static char stack[1 << 16];

static __attribute__((noinline)) void yield(ucontext_t *from, ucontext_t *to)
{
    swapcontext(from, to);
}

static void coroutine(void)
{
    for (;;) {
        from_many(40);
        yield(&there, &here);
    }
}

#if defined(__x86_64__)
// Returns to its caller's caller's place, or to its own, as it is told: a return address that is not the one of its
// call.
__attribute__((naked, noinline)) static unsigned return_elsewhere(unsigned other)
{
    __asm__("test %edi,%edi\n"
            "jz 1f\n"
            "lea 2f(%rip),%rax\n"
            "push %rax\n"
            "1: mov %edi,%eax\n"
            "ret\n"
            "2: mov $123,%eax\n"
            "ret\n");
}
#else
static unsigned return_elsewhere(unsigned other)
{
    return other ? 123 : 0;
}
#endif

int main(int n_arguments, char **arguments)
{
    const unsigned rounds = n_arguments > 1 ? (unsigned)atoi(arguments[1]) : 1;
    getcontext(&there);
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = sizeof stack;
    makecontext(&there, coroutine, 0);
    for (volatile unsigned i = 0; i < rounds; i++) {
        pointer();
        pointer = i % 3 == 0 ? second : i % 3 == 1 ? third : first;
        reach(from_many(i));
        reach(recurse(i % 17));
        if (setjmp(out) == 0)
            leave_by_longjmp(i % 5);
        yield(&here, &there);
        reach(return_elsewhere(i & 1));
        reach((unsigned)strtol(i & 1 ? "17" : "4", NULL, 10));
    }
    printf("%lu\n", sum);
    return 0;
}
