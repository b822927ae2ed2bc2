// SPDX-License-Identifier: GPL-2.0-or-later
//
// Functions of the C library that are system calls of interest, and those that begin threads and end the process. A
// call that the library makes for itself is not seen here; mappings.c finds what it has mapped.

#include "base/array.h"
#include "base/kernel.h"
#include "base/libc.h"
#include "base/text.h"
#include "host/events.h"
#include "host/host.h"
#include "host/native/hook.h"
#include "host/native/keeper.h"
#include "host/native/mappings.h"
#include "host/native/process.h"
#include "host/native/recording.h"
#include "host/native/thread.h"
#include "pages/mappings.h"

#include <asm/unistd.h>
#include <errno.h>
#include <linux/futex.h>
#include <linux/mman.h>
#include <linux/signal.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <stdarg.h>

// The original of a hook, found at its first call.
#define ORIGINAL(type, name, ...)                                                                                      \
    static type (*original_##name)(__VA_ARGS__);                                                                       \
    if (UNLIKELY(!original_##name))                                                                                    \
    *(Addr *)&original_##name = jm_native_next(#name)

// The kernel's result of a function of the C library that has returned -1.
#define KERNEL_RESULT(result) ((result) == (__typeof__(result))-1 ? -(Long)errno : (Long)(result))

// A system call, with what it does to the table of mappings if it succeeds.
typedef struct {
    UInt number;
    UWord args[6];
    Long returned; // by the kernel: -errno of a failed call
    void (*done)(const UWord *args, Addr result);
} Call;

// A child of vfork shares the memory, but not the descriptors.
static Bool is_others(const Call *c)
{
    switch (c->number) {
    case __NR_close:
    case __NR_close_range:
    case __NR_dup:
    case __NR_dup3:
    case __NR_fcntl:
        return !jm_native_is_process();
    default:
        return False;
    }
}

static void before(void *job)
{
    const Call *c = job;
    if (is_others(c))
        return;
    event_before_syscall(host_thread(), c->number, c->args);
}

static void after(void *job)
{
    const Call *c = job;
    if (is_others(c))
        return;
    if (c->done && !jm_is_error(c->returned))
        c->done(c->args, c->returned);
    event_after_syscall(host_thread(), c->number, c->args, c->returned);
}

// Make a call between the two events of a system call.
#define SYSTEM_CALL(result, call, number, done, ...)                                                                   \
    do {                                                                                                               \
        Call call_ = {number, {__VA_ARGS__}, 0, done};                                                                 \
        NATIVE_RECORD(before, &call_);                                                                                 \
        (result) = call;                                                                                               \
        Int error_ = errno;                                                                                            \
        call_.returned = KERNEL_RESULT(result);                                                                        \
        NATIVE_RECORD(after, &call_);                                                                                  \
        errno = error_;                                                                                                \
    } while (0)

// ---- mappings ------------------------------------------------------------------------------------------------

static void mapped(const UWord *args, Addr result)
{
    jm_native_mapped(result, args[1], args[2], args[3], args[4], args[5]);
}

static void unmapped(const UWord *args, Addr result)
{
    jm_native_unmapped(args[0], args[1]);
}

static void protected(const UWord *args, Addr result)
{
    jm_native_protected(args[0], args[1], args[2]);
}

static void moved(const UWord *args, Addr result)
{
    jm_native_moved(args[0], args[1], result, args[2]);
}

NATIVE_EXPORT void *mmap(void *address, SizeT bytes, Int protection, Int flags, Int fd, Long offset)
{
    ORIGINAL(void *, mmap, void *, SizeT, Int, Int, Int, Long);
    void *p;
    SYSTEM_CALL(p, original_mmap(address, bytes, protection, flags, fd, offset), __NR_mmap, mapped, (UWord)address,
                bytes, protection, flags, fd, offset);
    return p;
}

NATIVE_EXPORT void *mmap64(void *address, SizeT bytes, Int protection, Int flags, Int fd, Long offset)
    __attribute__((alias("mmap")));

NATIVE_EXPORT Int munmap(void *address, SizeT bytes)
{
    ORIGINAL(Int, munmap, void *, SizeT);
    Int result;
    SYSTEM_CALL(result, original_munmap(address, bytes), __NR_munmap, unmapped, (UWord)address, bytes);
    return result;
}

NATIVE_EXPORT Int mprotect(void *address, SizeT bytes, Int protection)
{
    ORIGINAL(Int, mprotect, void *, SizeT, Int);
    Int result;
    SYSTEM_CALL(result, original_mprotect(address, bytes, protection), __NR_mprotect, protected, (UWord)address, bytes,
                protection);
    return result;
}

// The new address is only there with MREMAP_FIXED; a register more or less does not matter.
NATIVE_EXPORT void *mremap(void *from, SizeT old_bytes, SizeT new_bytes, Int flags, void *to)
{
    ORIGINAL(void *, mremap, void *, SizeT, SizeT, Int, ...);
    void *p;
    SYSTEM_CALL(p, original_mremap(from, old_bytes, new_bytes, flags, to), __NR_mremap, moved, (UWord)from, old_bytes,
                new_bytes, flags, (UWord)to);
    return p;
}

// UCX and Open MPI overwrite the first instructions of the C library's mmap with a jump to functions of theirs, which
// make the call by syscall(). All that malloc maps comes that way too, and the program's own calls by hooks.
static struct {
    Word number;
    const HChar *name;
    const void *code;
    UChar first[16];
} overwritable[] = {{.number = __NR_mmap, .name = "mmap"},
                    {.number = __NR_munmap, .name = "munmap"},
                    {.number = __NR_mremap, .name = "mremap"}};
enum { N_OVERWRITABLE = sizeof overwritable / sizeof *overwritable };

static void keep_code(void)
{
    for (UInt i = 0; i < N_OVERWRITABLE; i++)
        if ((overwritable[i].code = (const void *)jm_native_next(overwritable[i].name)))
            memcpy(overwritable[i].first, overwritable[i].code, sizeof overwritable[i].first);
}

static Bool is_overwritten(Word number)
{
    for (UInt i = 0; i < N_OVERWRITABLE; i++)
        if (overwritable[i].number == number && overwritable[i].code)
            return memcmp(overwritable[i].code, overwritable[i].first, sizeof overwritable[i].first) != 0;
    return False;
}

static void attached(const UWord *args, Addr result)
{
    jm_native_attached(result);
}

static void detached(const UWord *args, Addr result)
{
    jm_native_detached(args[0]);
}

NATIVE_EXPORT void *shmat(Int id, const void *address, Int flags)
{
    ORIGINAL(void *, shmat, Int, const void *, Int);
    void *p;
    SYSTEM_CALL(p, original_shmat(id, address, flags), __NR_shmat, attached, id, (UWord)address, flags);
    return p;
}

NATIVE_EXPORT Int shmdt(const void *address)
{
    ORIGINAL(Int, shmdt, const void *);
    Int result;
    SYSTEM_CALL(result, original_shmdt(address), __NR_shmdt, detached, (UWord)address);
    return result;
}

// The break of a program that moves it itself. The C library's own heap moves it without this.
static void break_moved(void *job)
{
    const Addr *from = job, *to = from + 1;
    if (*to > *from)
        jm_native_mapped(*from, *to - *from, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_PRIVATE, -1, 0);
    else
        jm_native_unmapped(*to, *from - *to);
}

NATIVE_EXPORT void *sbrk(Word bytes)
{
    ORIGINAL(void *, sbrk, Word);
    void *at = original_sbrk(bytes);
    Addr from_and_to[2] = {(Addr)at, (Addr)at + bytes};
    if (bytes && at != (void *)-1)
        NATIVE_RECORD(break_moved, from_and_to);
    return at;
}

NATIVE_EXPORT Int brk(void *to)
{
    ORIGINAL(Int, brk, void *);
    Addr from_and_to[2] = {jm_kernel_call(__NR_brk, 0, 0, 0, 0, 0), (Addr)to};
    Int result = original_brk(to);
    if (result == 0 && from_and_to[0] != from_and_to[1])
        NATIVE_RECORD(break_moved, from_and_to);
    return result;
}

#ifndef __NR_close_range
#define __NR_close_range 436 // on all processors
#endif

// ---- files and devices ---------------------------------------------------------------------------------------

NATIVE_EXPORT Int ioctl(Int fd, UWord request, void *argument)
{
    ORIGINAL(Int, ioctl, Int, UWord, ...);
    Int result;
    SYSTEM_CALL(result, original_ioctl(fd, request, argument), __NR_ioctl, NULL, fd, request, (UWord)argument);
    return result;
}

#define OPEN(name)                                                                                                     \
    NATIVE_EXPORT Int name(const HChar *path, Int flags, UInt mode);                                                   \
    Int name(const HChar *path, Int flags, UInt mode)                                                                  \
    {                                                                                                                  \
        ORIGINAL(Int, name, const HChar *, Int, ...);                                                                  \
        Int result;                                                                                                    \
        SYSTEM_CALL(result, original_##name(path, flags, mode), __NR_openat, NULL, JM_AT_FDCWD, (UWord)path, flags,    \
                    mode);                                                                                             \
        return result;                                                                                                 \
    }
#define JM_AT_FDCWD (UWord) - 100
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                                                                   \
    NATIVE_EXPORT Int name(Int directory, const HChar *path, Int flags, UInt mode);                                    \
    Int name(Int directory, const HChar *path, Int flags, UInt mode)                                                   \
    {                                                                                                                  \
        ORIGINAL(Int, name, Int, const HChar *, Int, ...);                                                             \
        Int result;                                                                                                    \
        SYSTEM_CALL(result, original_##name(directory, path, flags, mode), __NR_openat, NULL, directory, (UWord)path,  \
                    flags, mode);                                                                                      \
        return result;                                                                                                 \
    }
OPENAT(openat)
OPENAT(openat64)

NATIVE_EXPORT Int close(Int fd)
{
    ORIGINAL(Int, close, Int);
    if (jm_native_is_own_descriptor(fd)) { // as if nobody had opened it
        errno = EBADF;
        return -1;
    }
    Int result;
    SYSTEM_CALL(result, original_close(fd), __NR_close, NULL, fd);
    return result;
}

NATIVE_EXPORT Int dup(Int fd)
{
    ORIGINAL(Int, dup, Int);
    Int result;
    SYSTEM_CALL(result, original_dup(fd), __NR_dup, NULL, fd);
    return result;
}

NATIVE_EXPORT Int dup3(Int fd, Int to, Int flags)
{
    ORIGINAL(Int, dup3, Int, Int, Int);
    Int result;
    jm_native_lose_descriptor(to);
    SYSTEM_CALL(result, original_dup3(fd, to, flags), __NR_dup3, NULL, fd, to, flags);
    return result;
}

NATIVE_EXPORT Int dup2(Int fd, Int to)
{
    ORIGINAL(Int, dup2, Int, Int);
    Int result;
    if (fd == to)
        return original_dup2(fd, to);
    jm_native_lose_descriptor(to);
    SYSTEM_CALL(result, original_dup2(fd, to), __NR_dup3, NULL, fd, to, 0);
    return result;
}

// The last argument is there with most commands; a register more or less does not matter.
NATIVE_EXPORT Int fcntl(Int fd, Int command, UWord argument)
{
    ORIGINAL(Int, fcntl, Int, Int, ...);
    Int result;
    SYSTEM_CALL(result, original_fcntl(fd, command, argument), __NR_fcntl, NULL, fd, command, argument);
    return result;
}

NATIVE_EXPORT Int fcntl64(Int fd, Int command, UWord argument) __attribute__((alias("fcntl")));

static Int close_some(UInt first, UInt last, UInt flags)
{
    Long result = jm_kernel_call(__NR_close_range, first, last, flags, 0, 0);
    if (!jm_is_error(result))
        return 0;
    errno = -result;
    return -1;
}

// But for the recorder's own.
static Int close_others(UInt first, UInt last, UInt flags)
{
    for (UInt fd = first; fd <= last && fd < MAX_OWN_DESCRIPTOR; fd++)
        if (jm_native_is_own_descriptor(fd)) {
            Int below = fd > first ? close_some(first, fd - 1, flags) : 0;
            return fd < last ? close_some(fd + 1, last, flags) : below;
        }
    return close_some(first, last, flags);
}

NATIVE_EXPORT Int close_range(UInt first, UInt last, Int flags);
Int close_range(UInt first, UInt last, Int flags)
{
    Int result;
    SYSTEM_CALL(result, close_others(first, last, flags), __NR_close_range, NULL, first, last, flags);
    return result;
}

NATIVE_EXPORT void closefrom(Int first);
void closefrom(Int first)
{
    UInt from = first < 0 ? 0 : first;
    if (close_range(from, ~0u, 0) == 0)
        return;
    for (UInt fd = from; fd < MAX_OWN_DESCRIPTOR; fd++) // a kernel before 5.9
        close(fd);
}

// The program is about to allow itself few system calls, and may be killed for others: the recorder makes no more.
static void is_confined(void *job)
{
    (void)job;
    jm_message("jmassif: the program limits its system calls by seccomp: the recording ends here\n");
    event_ended();
}

static void end_if_confined(Bool has_succeeded)
{
    if (has_succeeded && jm_native_state == NATIVE_RECORDS)
        jm_native_state = NATIVE_HAS_ENDED;
    if (has_succeeded)
        jm_native_refuse_start();
}

NATIVE_EXPORT Int prctl(Int option, UWord a, UWord b, UWord c, UWord d)
{
    ORIGINAL(Int, prctl, Int, UWord, UWord, UWord, UWord);
    Int result;
    if (option == PR_SET_SECCOMP && (a == SECCOMP_MODE_STRICT || b)) { // without a filter, it only asks
        NATIVE_RECORD(is_confined, NULL);
        result = original_prctl(option, a, b, c, d);
        end_if_confined(result == 0);
        return result;
    }
    SYSTEM_CALL(result, original_prctl(option, a, b, c, d), __NR_prctl, NULL, option, a, b, c, d);
    return result;
}

NATIVE_EXPORT SSizeT recvmsg(Int fd, void *message, Int flags)
{
    ORIGINAL(SSizeT, recvmsg, Int, void *, Int);
    SSizeT result;
    SYSTEM_CALL(result, original_recvmsg(fd, message, flags), __NR_recvmsg, NULL, fd, (UWord)message, flags);
    return result;
}

NATIVE_EXPORT SSizeT sendmsg(Int fd, const void *message, Int flags)
{
    ORIGINAL(SSizeT, sendmsg, Int, const void *, Int);
    SSizeT result;
    SYSTEM_CALL(result, original_sendmsg(fd, message, flags), __NR_sendmsg, NULL, fd, (UWord)message, flags);
    return result;
}

// ---- threads -------------------------------------------------------------------------------------------------

// Between the thread that makes another and that one. The new one waits until its stack is known.
typedef struct {
    void *(*routine)(void *argument);
    void *argument;
    NativeThread *thread;
    UWord made;    // the C library's handle
    Int may_begin; // a futex
    const NativeRegisters *registers;
} Start;

static void thread_begins(void *job)
{
    Start *start = job;
    jm_native_thread_begins(start->thread, start->registers);
    host_free(start);
}

static void before_thread(void *job)
{
    Start **start = job, given = **start;
    given.thread = jm_native_new_thread();
    *start = host_alloc("jm.native.thread", sizeof given);
    **start = given;
}

// The C library puts its record of a thread, which the handle points to, at the end of the stack.
static void thread_made(void *job)
{
    const Start *start = job;
    jm_native_stack_mapped(start->made);
}

static void thread_not_made(void *job)
{
    Start *start = job;
    jm_native_thread_not_begun(start->thread);
    host_free(start);
}

static void leaves(void *job)
{
    event_thread_leaves(((const NativeThread *)job)->id);
}

static void thread_leaves(void *thread)
{
    NATIVE_RECORD(leaves, thread);
}

// The C library calls thread_leaves() in a thread that ends, by a key of the thread's own storage.
static UInt leaving_key;
static Bool has_leaving_key;

static void watch_end_of_threads(void)
{
    ORIGINAL(Int, pthread_key_create, UInt *, void (*)(void *));
    if (!has_leaving_key)
        has_leaving_key = original_pthread_key_create(&leaving_key, thread_leaves) == 0;
}

static void watch_end(NativeThread *t)
{
    ORIGINAL(Int, pthread_setspecific, UInt, const void *);
    if (!has_leaving_key)
        return;
    t->is_recording = True; // it may allocate, for us
    original_pthread_setspecific(leaving_key, t);
    t->is_recording = False;
}

typedef struct {
    void *argument;
    void *(*routine)(void *argument);
} Begun;

__attribute__((used)) Begun jm_native_thread_starts(Start *start, Addr link);

// The stack pointer is that of the thread's first frame, as if it had called its routine.
Begun jm_native_thread_starts(Start *start, Addr link)
{
    while (!__atomic_load_n(&start->may_begin, __ATOMIC_ACQUIRE))
        jm_kernel_call(__NR_futex, (UWord)&start->may_begin, FUTEX_WAIT_PRIVATE, 0, 0, 0);
    Begun begun = {start->argument, start->routine};
    NativeRegisters registers;
    NATIVE_REGISTERS(&registers);
    start->registers = &registers;
    if (jm_native_begin_newcomer(thread_begins, start)) {
        jm_native_end();
        watch_end(jm_native_thread);
    }
    return begun;
}

// Jumps to the routine with nothing of ours left on the stack.
void *jm_native_thread_entry(void *start);
#if defined(__x86_64__)
__asm__(".text\n.globl jm_native_thread_entry\n.hidden jm_native_thread_entry\n"
        ".type jm_native_thread_entry, @function\njm_native_thread_entry:\n.cfi_startproc\n"
        "subq $8, %rsp\n.cfi_adjust_cfa_offset 8\ncall jm_native_thread_starts\n"
        "addq $8, %rsp\n.cfi_adjust_cfa_offset -8\nmovq %rax, %rdi\njmp *%rdx\n.cfi_endproc\n"
        ".size jm_native_thread_entry, .-jm_native_thread_entry\n");
#elif defined(__aarch64__)
__asm__(".text\n.globl jm_native_thread_entry\n.hidden jm_native_thread_entry\n"
        ".type jm_native_thread_entry, %function\njm_native_thread_entry:\n.cfi_startproc\n"
        "stp x29, x30, [sp, #-16]!\n.cfi_adjust_cfa_offset 16\n.cfi_rel_offset x29, 0\n.cfi_rel_offset x30, 8\n"
        "bl jm_native_thread_starts\nldp x29, x30, [sp], #16\n.cfi_adjust_cfa_offset -16\n.cfi_restore x29\n"
        ".cfi_restore x30\nbr x1\n.cfi_endproc\n.size jm_native_thread_entry, .-jm_native_thread_entry\n");
#endif

NATIVE_EXPORT Int pthread_create(UWord *made, const void *attributes, void *(*routine)(void *), void *argument)
{
    ORIGINAL(Int, pthread_create, UWord *, const void *, void *(*)(void *), void *);
    Start given = {.routine = routine, .argument = argument}, *start = &given;
    if (!NATIVE_RECORD(before_thread, &start))
        return original_pthread_create(made, attributes, routine, argument);
    watch_end_of_threads();
    Int error = original_pthread_create(made, attributes, jm_native_thread_entry, start);
    if (error) {
        NATIVE_RECORD(thread_not_made, start);
        return error;
    }
    start->made = *made;
    NATIVE_RECORD(thread_made, start);
    __atomic_store_n(&start->may_begin, 1, __ATOMIC_RELEASE);
    jm_kernel_call(__NR_futex, (UWord)&start->may_begin, FUTEX_WAKE_PRIVATE, 1, 0, 0);
    return 0;
}

// ---- fork, exec, exit ----------------------------------------------------------------------------------------

static void forks(void *job)
{
    (void)job;
    event_before_fork();
}

// Return whether this thread holds the lock for a fork: it does not if nothing was recorded when the fork began, or if
// a handler forks that no hook has seen.
static Bool was_forking(void)
{
    NativeThread *t = jm_native_thread;
    Bool was = t && t->is_forking;
    if (was)
        t->is_forking = False;
    return was;
}

static void before_fork(void)
{
    NativeRegisters registers;
    NATIVE_REGISTERS(&registers);
    if (!jm_native_begin(&registers))
        return;
    jm_native_thread->is_forking = True;
    jm_native_on_own_stack(forks, NULL);
    jm_native_fork_begins(); // the lock is held until after it
}

static void after_fork_in_parent(void)
{
    if (!was_forking())
        return;
    if (jm_native_fork_ended())
        jm_native_end();
    else
        jm_native_leave_unlocked(jm_native_thread);
}

static void is_child(void *job)
{
    (void)job;
    event_after_fork_in_child(jm_native_thread->id);
    jm_native_keeper_due();
}

static void after_fork_in_child(void)
{
    if (!was_forking()) {
        jm_native_wait_in_child();
        return;
    }
    Bool is_whole = jm_native_fork_ended();
    jm_native_fork_in_child();
    if (!is_whole) {
        jm_native_state = NATIVE_HAS_ENDED;
        jm_message("jmassif: child %d is not recorded: its parent's threads went on during the fork\n",
                   jm_process_id());
        jm_native_leave_unlocked(jm_native_thread);
        return;
    }
    jm_native_state = NATIVE_RECORDS;
    NativeRegisters registers;
    NATIVE_REGISTERS(&registers);
    jm_native_process_forked();
    jm_native_thread->registers = &registers;
    jm_native_thread->sp = registers.word[JM_REG_SP];
    jm_native_on_own_stack(is_child, NULL);
    jm_native_end();
}

Int __register_atfork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void), void *object);
Int on_exit(void (*end)(Int status, void *argument), void *argument);

Int __cxa_at_quick_exit(void (*end)(void), void *object);

// The trace is complete, and the program is about to end.
static void close_trace(void)
{
    event_closed();
    jm_native_state = NATIVE_HAS_ENDED;
    jm_native_keeper_stop();
}

static void ends(void *status)
{
    if (!jm_native_is_process()) // a child of vfork: its parent goes on with this memory
        return;
    jm_native_end_threads();
    const UWord args[6] = {*(UInt *)status};
    event_before_syscall(host_thread(), __NR_exit_group, args);
    jm_native_end_library_blocks();
    event_ended();
    close_trace();
}

void jm_native_killed(void *signal)
{
    jm_native_end_threads();
    event_ended();
    event_killed(*(UInt *)signal);
    close_trace();
}

static void end(Int status, void *argument)
{
    (void)argument;
    NATIVE_RECORD(ends, &status);
}

static Int quick_status;

static void end_quickly(void)
{
    end(quick_status, NULL);
}

NATIVE_EXPORT __attribute__((noreturn)) void quick_exit(Int status);
void quick_exit(Int status)
{
    ORIGINAL(__attribute__((noreturn)) void, quick_exit, Int);
    quick_status = status;
    original_quick_exit(status);
}

static void keep_code(void);

void jm_native_watch_process(void)
{
    keep_code();
    __register_atfork(before_fork, after_fork_in_parent, after_fork_in_child, NULL);
    on_exit(end, NULL); // the first that is registered runs last
    __cxa_at_quick_exit(end_quickly, NULL);
}

#define EXIT(name)                                                                                                     \
    NATIVE_EXPORT __attribute__((noreturn)) void name(Int status);                                                     \
    void name(Int status)                                                                                              \
    {                                                                                                                  \
        end(status, NULL);                                                                                             \
        jm_kernel_call(__NR_exit_group, status, 0, 0, 0, 0);                                                           \
        __builtin_unreachable();                                                                                       \
    }
EXIT(_exit)
EXIT(_Exit)

static void executes(void *job)
{
    (void)job;
    static const UWord args[6];
    if (!jm_native_is_process())
        return;
    event_before_syscall(host_thread(), __NR_execve, args);
    jm_native_keeper_stop();
    jm_native_keeper_due(); // if the call fails
}

NATIVE_EXPORT Int execve(const HChar *path, HChar *const argv[], HChar *const environment[])
{
    ORIGINAL(Int, execve, const HChar *, HChar *const[], HChar *const[]);
    NATIVE_RECORD(executes, NULL); // nothing comes after a call that succeeds
    return original_execve(path, argv, environment);
}

NATIVE_EXPORT Int execv(const HChar *path, HChar *const argv[])
{
    ORIGINAL(Int, execv, const HChar *, HChar *const[]);
    NATIVE_RECORD(executes, NULL); // nothing comes after a call that succeeds
    return original_execv(path, argv);
}

NATIVE_EXPORT Int execvp(const HChar *file, HChar *const argv[])
{
    ORIGINAL(Int, execvp, const HChar *, HChar *const[]);
    NATIVE_RECORD(executes, NULL); // nothing comes after a call that succeeds
    return original_execvp(file, argv);
}

NATIVE_EXPORT Int execvpe(const HChar *file, HChar *const argv[], HChar *const environment[])
{
    ORIGINAL(Int, execvpe, const HChar *, HChar *const[], HChar *const[]);
    NATIVE_RECORD(executes, NULL); // nothing comes after a call that succeeds
    return original_execvpe(file, argv, environment);
}

NATIVE_EXPORT Int fexecve(Int fd, HChar *const argv[], HChar *const environment[])
{
    ORIGINAL(Int, fexecve, Int, HChar *const[], HChar *const[]);
    NATIVE_RECORD(executes, NULL); // nothing comes after a call that succeeds
    return original_fexecve(fd, argv, environment);
}

// Those that take the arguments one by one, NULL at the end.
#define EXECL(name, after, call)                                                                                       \
    NATIVE_EXPORT Int name(const HChar *path, const HChar *argument, ...)                                              \
    {                                                                                                                  \
        va_list list;                                                                                                  \
        UInt n = 0;                                                                                                    \
        va_start(list, argument);                                                                                      \
        for (const HChar *a = argument; a; a = va_arg(list, const HChar *))                                            \
            n++;                                                                                                       \
        va_end(list);                                                                                                  \
        HChar *arguments[n + 1];                                                                                       \
        va_start(list, argument);                                                                                      \
        arguments[0] = (HChar *)argument;                                                                              \
        for (UInt i = 1; i <= n; i++)                                                                                  \
            arguments[i] = va_arg(list, HChar *);                                                                      \
        after;                                                                                                         \
        va_end(list);                                                                                                  \
        return call;                                                                                                   \
    }
EXECL(execl, , execv(path, arguments))
EXECL(execlp, , execvp(path, arguments))
EXECL(execle, HChar **environment = va_arg(list, HChar **), execve(path, arguments, environment))

// ---- calls by number -----------------------------------------------------------------------------------------

// A program's own wrapper of a call that its C library lacks, as a rule; of the others here only those that count.
NATIVE_EXPORT Word syscall(Word number, UWord a, UWord b, UWord c, UWord d, UWord e, UWord f);
Word syscall(Word number, UWord a, UWord b, UWord c, UWord d, UWord e, UWord f)
{
    ORIGINAL(Word, syscall, Word, ...);
    Word result;
    if (is_overwritten(number))
        return original_syscall(number, a, b, c, d, e, f);
    switch (number) {
    case __NR_seccomp:
        if (a != SECCOMP_SET_MODE_STRICT && (a != SECCOMP_SET_MODE_FILTER || !c))
            break;
        NATIVE_RECORD(is_confined, NULL);
        result = original_syscall(number, a, b, c, d, e, f);
        end_if_confined(result >= 0);
        return result;
    case __NR_close:
        return close(a);
    case __NR_close_range:
        return close_range(a, b, c);
    case __NR_dup:
        return dup(a);
    case __NR_dup3:
        return dup3(a, b, c);
    case __NR_exit_group:
        _exit(a);
    case __NR_fcntl:
        return fcntl(a, b, c);
    case __NR_ioctl:
        return ioctl(a, b, (void *)c);
    case __NR_mmap:
        return (Word)mmap((void *)a, b, c, d, e, f);
    case __NR_mprotect:
        return mprotect((void *)a, b, c);
    case __NR_mremap:
        return (Word)mremap((void *)a, b, c, d, (void *)e);
    case __NR_munmap:
        return munmap((void *)a, b);
    }
    return original_syscall(number, a, b, c, d, e, f);
}
