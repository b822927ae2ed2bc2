// SPDX-License-Identifier: GPL-2.0-or-later
//
// The lock, the threads, and their registers while they record.
//
// One lock guards the recorder: nothing below it waits for anything but itself. A thread's record is found by eight
// bytes of static TLS, which is scarce; the rest is here. A thread is taken for ended when the kernel no longer has it,
// as it may call free until then.

#include "host/native/thread.h"
#include "base/kernel.h"
#include "base/libc.h"
#include "base/text.h"
#include "host/events.h"
#include "host/host.h"
#include "host/native/mappings.h"
#include "host/native/process.h"
#include "host/native/pending.h"
#include "host/native/signals.h"

#include <asm/unistd.h>
#include <errno.h>
#include <linux/futex.h>
#include <linux/wait.h>
#include <signal.h>

__thread NativeThread *jm_native_thread;

// Threads beyond this number share the last record. Where two of them record at once, one seems to have left the
// recorder, and the recording ends.
#define MAX_THREADS 4096

static NativeThread threads[MAX_THREADS + 1]; // by id
static UInt n_used = 1;                       // ids given so far, and HOST_NO_THREAD
static NativeThread *running;                 // holds the lock

NativeStatePage jm_native_state_page;
void (*jm_native_at_event)(void);

#define MADV_WIPEONFORK 18 // since Linux 4.14

void jm_native_state_start(void)
{
    jm_kernel_call(__NR_madvise, (UWord)&jm_native_state_page, sizeof jm_native_state_page, MADV_WIPEONFORK, 0, 0);
}

// ---- the lock ------------------------------------------------------------------------------------------------

// 0: free; otherwise HELD, the kernel's id of the thread that has it, and FUTEX_WAITERS if others wait. One word for
// all, as a signal may come after any instruction. A record that threads share may have the id 0.
#define HELD (1U << 30)
static UInt lock;

static Int holder(void)
{
    return __atomic_load_n(&lock, __ATOMIC_RELAXED) & FUTEX_TID_MASK;
}

// A thread has left the recorder by longjmp out of a signal handler, or by its end. What it changed is half done.
static void stop_for_good(void)
{
    if (__atomic_exchange_n(&jm_native_state, NATIVE_HAS_ENDED, __ATOMIC_ACQ_REL) == NATIVE_RECORDS)
        jm_message("jmassif: a thread has left the recorder by a jump or by its end: the recording ends here\n");
    jm_native_unlock();
}

// A thread that has ended alone, or the keeper, which somebody has killed.
static void look_after_holder(void)
{
    const Int id = holder();
    const Bool has_gone = id && (jm_kernel_call(__NR_tkill, id, 0, 0, 0, 0) == -ESRCH ||
                                 jm_kernel_call(__NR_wait4, id, 0, WNOHANG | __WALL, 0, 0) == id);
    if (has_gone && id == holder())
        stop_for_good();
}

// ---- fork keeps the lock -------------------------------------------------------------------------------------

// While it does, the C library takes locks of its own, and other libraries' handlers run. If the forking thread waits
// there, it may be for one that waits for the recorder: then that goes on, and the child is not recorded. Several
// threads may have lost the lock in this way.
static Int forking; // the thread that has it, by the kernel's id

void jm_native_fork_begins(void)
{
    running->registers = NULL; // the hook returns
    __atomic_store_n(&forking, running->kernel_id, __ATOMIC_RELEASE);
}

// Take the lock away from a fork. False if it has ended, or has lost it already.
static Bool fork_loses_lock(Int id)
{
    return __atomic_compare_exchange_n(&forking, &id, 0, False, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

// Return whether the thread still has the lock. A child's thread has its parent's id here.
Bool jm_native_fork_ended(void)
{
    return fork_loses_lock(jm_native_thread->kernel_id);
}

static Bool is_asleep(Int id)
{
    HChar name[64], text[128];
    jm_format(name, sizeof name, "/proc/%d/stat", id);
    Int file = jm_open(name, 0, 0);
    Long n = file >= 0 ? jm_read(file, text, sizeof text - 1) : 0;
    jm_close(file);
    text[n > 0 ? n : 0] = 0;
    const HChar *end = strrchr(text, ')'); // of its name, proc(5)
    return end && end[1] == ' ' && end[2] == 'S';
}

static void look_after_fork(void)
{
    Int id = __atomic_load_n(&forking, __ATOMIC_ACQUIRE);
    if (id && is_asleep(id) && fork_loses_lock(id))
        jm_native_unlock();
}

// ---- taking it -----------------------------------------------------------------------------------------------

// A thread that waits looks rarely. A look takes the lock's memory away from the core that has it, and whoever gets the
// lock needs all of the recorder's data on its own core: it is best taken many times in a row there.
#define LOOKS  10
#define PAUSES 128 // between two looks

static void wait_a_moment(void)
{
    for (UInt i = 0; i < PAUSES; i++)
#if defined(__x86_64__)
        __builtin_ia32_pause();
#else
        __asm__ volatile("isb" ::: "memory");
#endif
}

static Bool change_lock(UInt from, UInt to)
{
    return __atomic_compare_exchange_n(&lock, &from, to, False, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

Bool jm_native_lock_soon(Int kernel_id)
{
    static const struct {
        Long seconds, nanoseconds;
    } patience = {0, 100000000};
    for (UInt i = 0; i < LOOKS; i++) {
        if (change_lock(0, HELD | kernel_id))
            return True;
        wait_a_moment();
    }
    for (;;) {
        const UInt now = __atomic_load_n(&lock, __ATOMIC_RELAXED), waited_for = now | FUTEX_WAITERS;
        if (now == 0) {
            if (change_lock(0, HELD | kernel_id | FUTEX_WAITERS)) // there may be others
                return True;
        } else if ((now == waited_for || change_lock(now, waited_for)) &&
                   jm_kernel_call(__NR_futex, (UWord)&lock, FUTEX_WAIT_PRIVATE, waited_for, (UWord)&patience, 0) ==
                       -ETIMEDOUT) {
            look_after_fork();
            look_after_holder();
            return False;
        }
    }
}

void jm_native_lock(Int kernel_id)
{
    while (!jm_native_lock_soon(kernel_id)) {
    }
}

Bool jm_native_is_locked(void)
{
    return __atomic_load_n(&lock, __ATOMIC_RELAXED) != 0;
}

void jm_native_unlock(void)
{
    if (__atomic_exchange_n(&lock, 0, __ATOMIC_RELEASE) & FUTEX_WAITERS)
        jm_kernel_call(__NR_futex, (UWord)&lock, FUTEX_WAKE_PRIVATE, 1, 0, 0);
}

typedef struct {
    Addr start;
    Int flags;
    SizeT bytes;
} SignalStack;

#define STACK_BYTES ((SizeT)1 << 20) // of the recorder

// Return whether the hook in which this thread entered the recorder cannot be below it on the stack, or has been
// overwritten.
static Bool has_left(const NativeThread *t, Addr sp)
{
    const NativeRegisters *r = t->registers;
    SignalStack other = {0, SS_DISABLE, 0};
    if (!r || jm_native_stack_end - sp < STACK_BYTES) // the recorder itself calls a hook
        return False;
    jm_kernel_call(__NR_sigaltstack, 0, (UWord)&other, 0, 0, 0);
    const Bool was_on_other = (Addr)r - other.start < other.bytes, is_on_other = (other.flags & SS_ONSTACK) != 0;
    if (was_on_other == is_on_other && sp > t->sp)
        return True;
    if (was_on_other != is_on_other)
        return was_on_other;
    return jm_kernel_can_read((Addr)r) && r->word[JM_REG_SP] != t->sp;
}

// A thread that seems to be in the recorder calls a hook. Return whether it has left without an end.
static Bool is_outside(const NativeThread *t, Addr sp)
{
    if (!has_left(t, sp))
        return False;
    if (holder() == t->kernel_id)
        stop_for_good();
    return True;
}

// ---- threads -------------------------------------------------------------------------------------------------

static Bool has_gone(const NativeThread *t)
{
    return t->kernel_id && jm_kernel_call(__NR_tgkill, jm_process_id(), t->kernel_id, 0, 0, 0) == -ESRCH;
}

void jm_native_end_threads(void)
{
    if (!jm_native_is_process()) // a child of vfork has none of these threads, but their records
        return;
    for (UInt id = 1; id < n_used; id++)
        if (has_gone(&threads[id])) {
            threads[id].kernel_id = 0;
            threads[id].is_recording = False;
            event_thread_ended(id);
        }
}

// Ids are dense: the lowest free one.
static NativeThread *free_record(void)
{
    UInt id = 1;
    while (id < n_used && threads[id].kernel_id)
        id++;
    if (id == n_used && id < MAX_THREADS)
        n_used++;
    if (id > MAX_THREADS)
        id = MAX_THREADS;
    threads[id].id = id;
    return &threads[id];
}

NativeThread *jm_native_new_thread(void)
{
    NativeThread *t = free_record();
    if (t->kernel_id == 0 && t->id + 1 == n_used)
        jm_native_end_threads(); // before the number of threads grows
    t = free_record();
    t->kernel_id = JM_NOT_BEGUN;
    event_thread_created(t->id);
    return t;
}

static UWord own_pointer(void)
{
    UWord pointer;
#if defined(__x86_64__)
    __asm__("movq %%fs:0, %0" : "=r"(pointer)); // its first word is its own address (ABI for thread-local storage)
#else
    __asm__("mrs %0, tpidr_el0" : "=r"(pointer));
#endif
    return pointer;
}

void jm_native_thread_begins(NativeThread *t, const NativeRegisters *registers)
{
    t->kernel_id = jm_thread_id();
    t->pointer = own_pointer();
    for (UInt id = 1; id < n_used; id++) // the kernel gives numbers again
        if (&threads[id] != t && threads[id].kernel_id == t->kernel_id) {
            threads[id].kernel_id = 0;
            event_thread_ended(id);
        }
    t->sp = registers->word[JM_REG_SP];
    t->registers = registers;
    running = t;
    t->is_recording = True;
    jm_native_thread = t;
    event_thread_began(t->id);
}

void jm_native_thread_not_begun(NativeThread *t)
{
    t->kernel_id = 0;
    event_thread_ended(t->id);
}

// ---- the recorder's stack ------------------------------------------------------------------------------------

__attribute__((used)) Addr jm_native_stack_end;

void jm_native_own_stack_start(void)
{
    jm_native_stack_end = JM_ROUND_DOWN((Addr)host_alloc("jm.native.stack", STACK_BYTES) + STACK_BYTES, 64);
}

// The frame pointer leads back; debuggers follow it by the unwind table.
#if defined(__x86_64__)
__asm__(".text\n.globl jm_native_on_own_stack\n.hidden jm_native_on_own_stack\n"
        ".type jm_native_on_own_stack, @function\njm_native_on_own_stack:\n.cfi_startproc\n"
        "pushq %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset rbp, -16\nmovq %rsp, %rbp\n.cfi_def_cfa_register rbp\n"
        "movq jm_native_stack_end(%rip), %rsp\nmovq %rdi, %rax\nmovq %rsi, %rdi\ncall *%rax\n"
        "movq %rbp, %rsp\npopq %rbp\n.cfi_def_cfa rsp, 8\nret\n.cfi_endproc\n"
        ".size jm_native_on_own_stack, .-jm_native_on_own_stack\n");
#elif defined(__aarch64__)
__asm__(".text\n.globl jm_native_on_own_stack\n.hidden jm_native_on_own_stack\n"
        ".type jm_native_on_own_stack, %function\njm_native_on_own_stack:\n.cfi_startproc\n"
        "stp x29, x30, [sp, #-16]!\n.cfi_def_cfa_offset 16\n.cfi_offset x29, -16\n.cfi_offset x30, -8\n"
        "mov x29, sp\n.cfi_def_cfa_register x29\nadrp x2, jm_native_stack_end\n"
        "ldr x2, [x2, #:lo12:jm_native_stack_end]\nmov sp, x2\nmov x3, x0\nmov x0, x1\nblr x3\n"
        "mov sp, x29\nldp x29, x30, [sp], #16\n.cfi_def_cfa sp, 0\n.cfi_restore x29\n.cfi_restore x30\nret\n"
        ".cfi_endproc\n.size jm_native_on_own_stack, .-jm_native_on_own_stack\n");
#endif

// ---- events --------------------------------------------------------------------------------------------------

// A thread that no hook has seen begin.
static void adopt(void *registers)
{
    jm_native_thread_begins(jm_native_new_thread(), registers);
}

static void report_changes(void *job)
{
    (void)job;
    jm_native_report_changes();
}

static void settle(void *registers)
{
    const NativeRegisters *r = registers;
    jm_native_pending_settle((CallPlace){r->word[JM_REG_SP], r->word[JM_REG_FP]});
}

Bool jm_native_begin_newcomer(void (*begins)(void *job), void *job)
{
    ULong mask;
    jm_native_signals_hold(&mask);
    jm_native_lock(jm_thread_id());
    if (jm_native_state == NATIVE_RECORDS)
        jm_native_on_own_stack(begins, job);
    NativeThread *t = running = jm_native_thread;
    if (t) {
        t->mask = mask;
        t->is_masked = True;
        return True;
    }
    jm_native_unlock();
    jm_kernel_call(__NR_rt_sigprocmask, SIG_SETMASK, (UWord)&mask, 0, sizeof mask, 0);
    return False;
}

Bool jm_native_begin(const NativeRegisters *registers)
{
    NativeThread *t = jm_native_thread;
    if (UNLIKELY(jm_native_state != NATIVE_RECORDS))
        return False;
    if (UNLIKELY(t && t->is_recording) && !is_outside(t, registers->word[JM_REG_SP]))
        return False;
    if (UNLIKELY(!t)) // in a child of vfork it would have the child's id, and the thread goes on when that has gone
        return jm_native_is_process() && jm_native_begin_newcomer(adopt, (void *)registers);
    t->sp = registers->word[JM_REG_SP];
    t->registers = registers;
    t->is_recording = True;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    jm_native_lock(t->kernel_id);
    if (UNLIKELY(jm_native_state != NATIVE_RECORDS)) {
        running = t;
        jm_native_end();
        return False;
    }
    running = t;
    if (UNLIKELY(jm_native_has_changes))
        jm_native_on_own_stack(report_changes, NULL);
    if (UNLIKELY(jm_native_at_event != NULL))
        jm_native_at_event();
    if (UNLIKELY(jm_native_n_pending))
        jm_native_on_own_stack(settle, (void *)registers);
    return True;
}

void jm_native_end(void)
{
    NativeThread *t = jm_native_thread; // `running` is another's if this one was thought to have left (stop_for_good)
    running = NULL;
    jm_native_unlock();
    jm_native_leave_unlocked(t);
}

void jm_native_leave_unlocked(NativeThread *t)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    t->is_recording = False;
    t->registers = NULL;
    if (UNLIKELY(t->n_kept || t->is_masked))
        jm_native_signals_let_go(t);
}

void jm_native_fork_in_child(void)
{
    NativeThread *t = jm_native_thread;
    for (UInt id = 1; id < n_used; id++)
        if (&threads[id] != t)
            threads[id] = (NativeThread){.id = id};
    t->kernel_id = jm_thread_id();
    t->is_masked |= t->n_kept != 0;
    t->n_kept = 0; // the parent's
    forking = 0;
    lock = HELD | t->kernel_id; // no other thread of the child can wait for it
}

// ---- host.h --------------------------------------------------------------------------------------------------

Bool host_others_run(void)
{
    return True;
}

UWord host_call(Addr function)
{
    return ((UWord(*)(void))function)();
}

UInt host_n_threads(void)
{
    return MAX_THREADS + 1;
}

ThreadId host_thread(void)
{
    return running ? running->id : HOST_NO_THREAD; // the keeper asks, which is no thread of the program
}

static const NativeRegisters *registers_of(ThreadId tid)
{
    static const NativeRegisters none;
    const NativeRegisters *r = threads[tid].registers;
    return r ? r : &none;
}

UWord host_register(ThreadId tid, UInt dwarf_number)
{
    return registers_of(tid)->word[dwarf_number];
}

Addr host_sp(ThreadId tid)
{
    return registers_of(tid)->word[JM_REG_SP];
}

Addr host_ip(ThreadId tid)
{
    return registers_of(tid)->word[NATIVE_IP];
}

HostFrameRegisters host_frame(ThreadId tid)
{
    const UWord *word = registers_of(tid)->word;
    HostFrameRegisters frame = {.ip = word[NATIVE_IP], .sp = word[JM_REG_SP], .fp = word[JM_REG_FP]};
#if defined(__aarch64__)
    frame.link = word[JM_REG_RA];
#endif
    return frame;
}

UWord host_thread_pointer(ThreadId tid)
{
    return running && running->id == tid ? own_pointer() : threads[tid].pointer; // the last record is shared
}

Bool host_may_step(Addr ip)
{
    return False;
}

Bool host_step(HostFrameRegisters *frame, Addr stack_end)
{
    return False;
}
