// SPDX-License-Identifier: GPL-2.0-or-later
//
// A handler that the program sets is called by one of ours. If that has interrupted the recorder, it keeps the signal,
// and has all signals blocked when it returns; the thread sends itself what was kept when its event has ended. So a
// handler never runs under the recorder's lock. Handlers that are set by a system call of the program's own are not
// seen; thread.c finds out when one of those has jumped out of an event.
//
// Signals that would end the program have this handler, too, which records the end first; to the program it is SIG_DFL.

#include "host/native/signals.h"
#include "base/kernel.h"
#include "base/libc.h"
#include "cuda/cuda.h"
#include "host/host.h"
#include "host/native/process.h"
#include "python/python.h"

#include <asm/unistd.h>
#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <ucontext.h>

typedef void (*Handler)(Int number, siginfo_t *info, void *context);

#define KERNEL_SIGNALS 64
#define BIT(number)    (1ULL << ((number)-1))

// Errors of the thread itself cannot wait: it would repeat them.
#define ERRORS (BIT(SIGSEGV) | BIT(SIGBUS) | BIT(SIGFPE) | BIT(SIGILL) | BIT(SIGTRAP) | BIT(SIGSYS))

// The kernel ends a process at these. The C library keeps 32 and 33, and the real-time signals are hardly left to it.
#define FATAL                                                                                                          \
    (ERRORS | BIT(SIGHUP) | BIT(SIGINT) | BIT(SIGQUIT) | BIT(SIGABRT) | BIT(SIGUSR1) | BIT(SIGUSR2) | BIT(SIGPIPE) |   \
     BIT(SIGALRM) | BIT(SIGTERM) | BIT(SIGSTKFLT) | BIT(SIGXCPU) | BIT(SIGXFSZ) | BIT(SIGVTALRM) | BIT(SIGPROF) |      \
     BIT(SIGIO) | BIT(SIGPWR))

// The program's handlers, and whether they want a siginfo_t: in one word, as a signal may come at any time. 0: SIG_DFL.
#define WANTS_INFO ((UWord)1 << 63)
static UWord handlers[KERNEL_SIGNALS + 1];

static Handler handler_of(UWord entry)
{
    return (Handler)(entry & ~WANTS_INFO);
}

void jm_native_signals_hold(ULong *before)
{
    const ULong all = ~ERRORS;
    jm_kernel_call(__NR_rt_sigprocmask, SIG_BLOCK, (UWord)&all, (UWord)before, sizeof all, 0);
}

static Int (*original(void))(Int number, const struct sigaction *action, struct sigaction *before)
{
    static Int (*found)(Int, const struct sigaction *, struct sigaction *);
    if (UNLIKELY(!found))
        *(Addr *)&found = jm_native_next("sigaction");
    return found;
}

// Once the handler has returned, the signal comes again and ends the program, with its own status and core file.
static void end_by(Int number, siginfo_t *info)
{
    const struct sigaction by_default = {.sa_handler = SIG_DFL};
    if (jm_native_is_process())
        NATIVE_RECORD(jm_native_killed, &number);
    original()(number, &by_default, NULL);
    jm_kernel_call(__NR_rt_tgsigqueueinfo, jm_process_id(), jm_thread_id(), number, (UWord)info, 0);
}

static void handle(Int number, siginfo_t *info, void *context)
{
    NativeThread *t = jm_native_thread;
    const Bool is_error = (ERRORS & BIT(number)) && info->si_code > 0;
    if (LIKELY(!t || !t->is_recording || is_error || t->n_kept == sizeof t->kept / sizeof *t->kept)) {
        Handler handler = handler_of(__atomic_load_n(&handlers[number], __ATOMIC_RELAXED));
        if (handler)
            handler(number, info, context);
        else
            end_by(number, info);
        return;
    }
    // Of several at once, the one that has interrupted the recorder itself comes last: its mask is the right one.
    ULong *mask = (ULong *)&((ucontext_t *)context)->uc_sigmask;
    t->mask = *mask;
    *mask |= ~ERRORS;
    memcpy(&t->kept[t->n_kept++], info, sizeof *info);
}

void jm_native_signals_let_go(NativeThread *t)
{
    _Static_assert(sizeof *t->kept == sizeof(siginfo_t), "a signal must fit");
    const Int process = jm_process_id();
    const ULong mask = t->mask;
    const UInt n = t->n_kept;
    t->is_masked = False;
    t->n_kept = 0;
    for (UInt i = 0; i < n; i++) {
        siginfo_t *info = (siginfo_t *)&t->kept[i];
        jm_kernel_call(__NR_rt_tgsigqueueinfo, process, t->kernel_id, info->si_signo, (UWord)info, 0);
    }
    jm_kernel_call(__NR_rt_sigprocmask, SIG_SETMASK, (UWord)&mask, 0, sizeof mask, 0);
}

// ---- hooks ---------------------------------------------------------------------------------------------------

// SIGINT is ignored, as in a script's background jobs. An interpreter that calls Py_FinalizeEx itself then resets no
// signal before it frees anything, but it flushes its streams, which releases a lock.
static Bool ignores_interrupt;

static void look_for_end(void *job)
{
    (void)job;
    if (jm_python_begins_to_end())
        jm_cuda_program_ends(host_thread());
}

NATIVE_EXPORT Int sigaction(Int number, const struct sigaction *action, struct sigaction *before)
{
    if (number < 1 || number > KERNEL_SIGNALS)
        return original()(number, action, before);
    // An interpreter that calls Py_FinalizeEx itself resets SIGINT, if that is not ignored, before it frees anything.
    if (action && action->sa_handler == SIG_DFL)
        NATIVE_RECORD(look_for_end, NULL);
    UWord *entry = &handlers[number], was = __atomic_load_n(entry, __ATOMIC_RELAXED);
    // One that serves once would be gone when the signal is sent again.
    // A child of vfork has handlers of its own, but this table is its parent's.
    const Bool is_covered =
        action && jm_native_is_process() &&
        (action->sa_handler == SIG_DFL ? (FATAL & BIT(number)) != 0
                                       : action->sa_handler != SIG_IGN && !(action->sa_flags & SA_RESETHAND));
    struct sigaction covered;
    if (is_covered) {
        covered = *action;
        covered.sa_sigaction = handle;
        covered.sa_flags |= SA_SIGINFO;
        __atomic_store_n(entry, (UWord)action->sa_sigaction | (action->sa_flags & SA_SIGINFO ? WANTS_INFO : 0),
                         __ATOMIC_RELAXED);
    }
    Int result = original()(number, is_covered ? &covered : action, before);
    if (action && number == SIGINT && result == 0)
        ignores_interrupt = action->sa_handler == SIG_IGN;
    if (result != 0) {
        __atomic_store_n(entry, was, __ATOMIC_RELAXED);
    } else if (before && before->sa_sigaction == handle) {
        before->sa_sigaction = handler_of(was);
        if (!(was & WANTS_INFO))
            before->sa_flags &= ~SA_SIGINFO;
    }
    return result;
}

// As in the C library: the call is begun again, or, with System V's, the handler serves once, which is not covered.
NATIVE_EXPORT void (*signal(Int number, void (*handler)(Int)))(Int);
void (*signal(Int number, void (*handler)(Int)))(Int)
{
    static void (*(*original_signal)(Int, void (*)(Int)))(Int);
    if (UNLIKELY(!original_signal))
        *(Addr *)&original_signal = jm_native_next("signal");
    void (*before)(Int) = original_signal(number, handler);
    struct sigaction now;
    if (before == SIG_ERR || number < 1 || number > KERNEL_SIGNALS)
        return before;
    if ((UWord)before == (UWord)handle)
        before = (void (*)(Int))(__atomic_load_n(&handlers[number], __ATOMIC_RELAXED) & ~WANTS_INFO);
    ignores_interrupt = number == SIGINT ? handler == SIG_IGN : ignores_interrupt;
    if (handler != SIG_IGN && original()(number, NULL, &now) == 0)
        sigaction(number, &now, NULL);
    return before;
}

NATIVE_EXPORT Int sem_post(sem_t *semaphore)
{
    static Int (*original_post)(sem_t *);
    if (UNLIKELY(!original_post))
        *(Addr *)&original_post = jm_native_next("sem_post");
    if (UNLIKELY(ignores_interrupt))
        NATIVE_RECORD(look_for_end, NULL);
    return original_post(semaphore);
}

void jm_native_watch_signals(void)
{
    struct sigaction now;
    ignores_interrupt = original()(SIGINT, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
    for (Int number = 1; number < KERNEL_SIGNALS; number++)
        if ((FATAL & BIT(number)) && original()(number, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
            sigaction(number, &now, NULL);
}
