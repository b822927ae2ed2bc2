// SPDX-License-Identifier: GPL-2.0-or-later
//
// Handlers that allocate: on the thread's stack and on one of their own, of a signal that came at a function's first
// instruction, and with a way back that has no unwind table.

#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

// What lies before the one that traps has another frame.
void trapping(void);
#if defined(__x86_64__)
#define TRAP        "ud2\n"
#define LARGE_FRAME "sub $4096, %rsp\n .cfi_def_cfa_offset 4104\n"
#define SKIP(c)     ((c)->uc_mcontext.gregs[REG_RIP] += 2)
#define SA_RESTORER 0x04000000
__asm__(".text\n .type way_back, @function\n way_back: mov $15, %rax\n syscall\n .size way_back, . - way_back\n");
#else
#define TRAP        "udf #0\n"
#define LARGE_FRAME "sub sp, sp, #4000\n .cfi_def_cfa_offset 4000\n"
#define SKIP(c)     ((c)->uc_mcontext.pc += 4)
#define SA_RESTORER 0 // there is one way back only
__asm__(".text\n way_back: ret\n");
#endif
__asm__(".type before, @function\n before: .cfi_startproc\n" LARGE_FRAME TRAP ".cfi_endproc\n"
        ".globl trapping\n .type trapping, @function\n"
        "trapping: .cfi_startproc\n" TRAP "ret\n .cfi_endproc\n .size trapping, . - trapping\n");
extern void way_back(void) __asm__("way_back");

static struct {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)(void);
    unsigned long mask;
} action;

static void allocate(int bytes)
{
    free(malloc(bytes));
    __asm__ volatile("");
}

static void on_thread_stack(int number, siginfo_t *info, void *context)
{
    allocate(100);
    SKIP((ucontext_t *)context);
}

static void on_own_stack(int number, siginfo_t *info, void *context)
{
    allocate(200);
    SKIP((ucontext_t *)context);
}

static void with_own_way_back(int number)
{
    allocate(300);
}

static __attribute__((noinline)) void caller(int n)
{
    if (n)
        caller(n - 1);
    else
        trapping();
    __asm__ volatile("");
}

static __attribute__((noinline)) void sender(void)
{
    syscall(SYS_kill, getpid(), SIGUSR1);
    __asm__ volatile("");
}

int main(void)
{
    static char stack[65536];
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
    sigaction(SIGILL, &(struct sigaction){.sa_sigaction = on_thread_stack, .sa_flags = SA_SIGINFO}, NULL);
    caller(1);
    sigaction(SIGILL, &(struct sigaction){.sa_sigaction = on_own_stack, .sa_flags = SA_SIGINFO | SA_ONSTACK}, NULL);
    caller(2);
    action.handler = with_own_way_back;
    action.flags = SA_RESTORER;
    action.restorer = way_back;
    syscall(SYS_rt_sigaction, SIGUSR1, &action, NULL, sizeof action.mask);
    sender();
    return 0;
}
