// SPDX-License-Identifier: GPL-2.0-or-later
//
// Counts the instructions that a program and all that it runs inside of (Valgrind, its translations) take between two
// marks, by single-stepping: exact, the same on a busy machine, and without the counters that virtual machines lack. A
// mark is the system call getpgid(MARK), which Valgrind passes on. x86-64 only.
//
//     steps PROGRAM [ARGUMENT]…      prints the number to standard error

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mark.h"

static pid_t child;

// Lets the child go on by `request` and waits until it stops again. False: it has ended.
static int go_on(int request, int *signal)
{
    int status;
    ptrace(request, child, NULL, (void *)(long)*signal);
    if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
        return 0;
    // What a tracer sees and the program does not.
    *signal = WSTOPSIG(status) == SIGTRAP || WSTOPSIG(status) == (SIGTRAP | 0x80) ? 0 : WSTOPSIG(status);
    return 1;
}

static int is_at_mark(void)
{
    struct user_regs_struct regs;
    ptrace(PTRACE_GETREGS, child, NULL, &regs);
    return regs.orig_rax == SYS_getpgid && regs.rdi == MARK;
}

int main(int argc, char **argv)
{
    int signal = 0, status;
    if (argc < 2) {
        fprintf(stderr, "usage: steps PROGRAM [ARGUMENT]...\n");
        return 2;
    }
    child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        raise(SIGSTOP);
        execvp(argv[1], argv + 1);
        perror(argv[1]);
        _exit(127);
    }
    waitpid(child, &status, 0);
    do {
        if (!go_on(PTRACE_SYSCALL, &signal)) {
            fprintf(stderr, "steps: the program ended before its first mark\n");
            return 1;
        }
    } while (!is_at_mark());
    go_on(PTRACE_SYSCALL, &signal); // out of the call
    long n = 0;
    do {
        if (!go_on(PTRACE_SINGLESTEP, &signal)) {
            fprintf(stderr, "steps: the program ended before its second mark\n");
            return 1;
        }
        n++;
    } while (!is_at_mark());
    fprintf(stderr, "%ld\n", n);
    kill(child, SIGKILL);
    return 0;
}
