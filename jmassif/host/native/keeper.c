// SPDX-License-Identifier: GPL-2.0-or-later
//
// Keeps the trace up to date while the program allocates nothing, or waits. A thread would do, but a program can count
// its threads, and Python warns of a fork beside one. So it is a process that shares the program's memory and files. It
// blocks every signal, and ends with the program, or when that executes another. wait() does not see it, as it sends
// no signal when it ends. It uses system calls alone: the C library's data of a thread are those of the thread that
// made it.

#include "host/native/keeper.h"
#include "base/clock.h"
#include "base/kernel.h"
#include "base/libc.h"
#include "base/text.h"
#include "events/snapshot.h"
#include "host/host.h"
#include "host/native/thread.h"
#include "ledger/ledger.h"
#include "trace/trace_file.h"

#include <asm/unistd.h>
#include <fcntl.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/signal.h>
#include <linux/uio.h>
#include <linux/wait.h>

#define KEEPER_NAME      "jmassif-keeper"
#define MS_BETWEEN_LOOKS 200
#define STACK_BYTES      ((SizeT)256 << 10)

static Int keeper, kept; // process ids; 0: none
static UChar *stack;

// The program still has this memory while it holds the same there: its own id, and the time of its start.
static struct {
    UWord process, time;
} sign;

static Bool is_kept(void)
{
    __typeof__(sign) found = {0, 0};
    struct iovec to = {&found, sizeof found}, from = {&sign, sizeof sign};
    return jm_parent_id() == kept &&
           jm_kernel_call6(__NR_process_vm_readv, kept, (UWord)&to, 1, (UWord)&from, 1, 0) == sizeof found &&
           memcmp(&found, &sign, sizeof sign) == 0;
}

// The id of a keeper that begins is not known at once.
static Bool is_wanted(Int own)
{
    return jm_native_state == NATIVE_RECORDS && (keeper == own || keeper == -1);
}

// Wait for the signal that comes when the program ends; all signals are blocked.
static void wait_a_while(void)
{
    const ULong all = ~0ULL;
    const struct {
        Long seconds, nanoseconds;
    } time = {0, MS_BETWEEN_LOOKS * 1000000};
    jm_kernel_call(__NR_rt_sigtimedwait, (UWord)&all, 0, (UWord)&time, sizeof all, 0);
}

__attribute__((noreturn)) static void keep(void)
{
    jm_kernel_call(__NR_prctl, PR_SET_PDEATHSIG, SIGUSR1, 0, 0, 0);
    jm_kernel_call(__NR_prctl, PR_SET_NAME, (UWord)KEEPER_NAME, 0, 0, 0);
    const Int own = jm_process_id();
    while (is_wanted(own) && is_kept()) {
        if (!jm_native_lock_soon(own))
            continue; // a program that is killed as it has the lock keeps it
        if (is_wanted(own))
            jm_snapshot_beside();
        jm_native_unlock();
        wait_a_while();
    }
    jm_kernel_call(__NR_exit, 0, 0, 0, 0, 0);
    __builtin_unreachable();
}

// clone(2) with a stack on which the address of a function lies; the child calls it.
Long jm_native_clone(UWord flags, UWord *stack);
#if defined(__x86_64__)
__asm__(".text\n.globl jm_native_clone\n.hidden jm_native_clone\n.type jm_native_clone, @function\n"
        "jm_native_clone:\nmovl $56, %eax\nxorl %edx, %edx\nxorl %r10d, %r10d\nxorl %r8d, %r8d\nsyscall\n"
        "testq %rax, %rax\njnz 1f\nxorl %ebp, %ebp\npopq %rax\nandq $-16, %rsp\ncall *%rax\nud2\n1: ret\n"
        ".size jm_native_clone, .-jm_native_clone\n");
#elif defined(__aarch64__)
__asm__(".text\n.globl jm_native_clone\n.hidden jm_native_clone\n.type jm_native_clone, %function\n"
        "jm_native_clone:\nmov x2, #0\nmov x3, #0\nmov x4, #0\nmov x8, #220\nsvc #0\n"
        "cbnz x0, 1f\nmov x29, #0\nldr x1, [sp], #16\nblr x1\nbrk #0\n1: ret\n"
        ".size jm_native_clone, .-jm_native_clone\n");
#endif

void jm_native_keeper_start(void)
{
    jm_native_at_event = NULL;
    if (keeper)
        return;
    if (!stack)
        stack = host_alloc("jm.native.keeper", STACK_BYTES);
    UWord *top = (UWord *)JM_ROUND_DOWN((Addr)stack + STACK_BYTES, 64) - 8;
    *top = (UWord)keep;
    kept = jm_process_id();
    sign.process = kept;
    sign.time = jm_clock_start_unix_ms();
    const ULong all = ~0ULL;
    ULong before;
    jm_kernel_call(__NR_rt_sigprocmask, SIG_BLOCK, (UWord)&all, (UWord)&before, sizeof all, 0);
    keeper = -1; // until its id is known
    Long made = jm_native_clone(CLONE_VM | CLONE_FS | CLONE_FILES, top);
    keeper = jm_is_error(made) ? 0 : made;
    jm_kernel_call(__NR_rt_sigprocmask, SIG_SETMASK, (UWord)&before, 0, sizeof before, 0);
}

// Under the lock: it is not at work. What this process executes next is not to find a dead child. After a change of
// user the kernel may forbid the signal: then it ends by itself, a moment later.
void jm_native_keeper_stop(void)
{
    Int was = keeper;
    keeper = 0;
    if (was > 0 && jm_kernel_call(__NR_kill, was, SIGKILL, 0, 0, 0) == 0)
        jm_kernel_call(__NR_wait4, was, 0, __WALL, 0, 0);
    else
        stack = NULL; // it may be on it
}

// A recorded process may run any program, and another one that runs the same need not be recorded. Its keeper is its
// child. /proc/PID/stat begins with "PID (NAME) STATE PARENT", proc(5).
Int host_recorded_by(Int pid)
{
    HChar path[32], text[64] = "";
    jm_format(path, sizeof path, "/proc/%d/stat", pid);
    Int file = jm_open(path, O_RDONLY | O_CLOEXEC, 0);
    if (jm_is_error(file))
        return 0;
    jm_read(file, text, sizeof text - 1);
    jm_close(file);
    const HChar *name = strstr(text, " (" KEEPER_NAME ") ");
    return name ? (Int)jm_text_number(name + sizeof KEEPER_NAME + 5, NULL) : 0;
}

// A child that executes another program soon needs none, nor a trace: it hardly allocates before.
static void start_if_due(void)
{
    if (!jm_trace_is_pending() || jm_ledger_n_changed())
        jm_native_keeper_start();
}

void jm_native_keeper_due(void)
{
    keeper = 0;
    jm_native_at_event = start_if_due;
}
