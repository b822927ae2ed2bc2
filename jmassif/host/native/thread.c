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
#include "host/events.h"
#include "host/host.h"
#include "host/native/mappings.h"
#include "host/native/pending.h"

#include <asm/unistd.h>
#include <errno.h>
#include <linux/futex.h>

__thread NativeThread *jm_native_thread;

// Threads beyond this number share the last record, and so a stack that is never found again: slow, but not wrong.
#define MAX_THREADS 4096

static NativeThread threads[MAX_THREADS + 1]; // by id
static UInt n_used = 1;                       // ids given so far, and HOST_NO_THREAD
static NativeThread *running;                 // holds the lock

NativeState jm_native_state;
void (*jm_native_at_event)(void);
ULong jm_native_n_missed;

// ---- the lock ------------------------------------------------------------------------------------------------

// 0 free, 1 held, 2 held and waited for (Drepper, "Futexes are tricky").
static Int lock;

#define SPINS 100

void jm_native_lock(void)
{
    for (UInt i = 0; i < SPINS; i++) {
        Int expected = 0;
        if (__atomic_compare_exchange_n(&lock, &expected, 1, False, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return;
    }
    while (__atomic_exchange_n(&lock, 2, __ATOMIC_ACQUIRE) != 0)
        jm_kernel_call(__NR_futex, (UWord)&lock, FUTEX_WAIT_PRIVATE, 2, 0, 0);
}

void jm_native_unlock(void)
{
    if (__atomic_exchange_n(&lock, 0, __ATOMIC_RELEASE) == 2)
        jm_kernel_call(__NR_futex, (UWord)&lock, FUTEX_WAKE_PRIVATE, 1, 0, 0);
}

// ---- threads -------------------------------------------------------------------------------------------------

static Bool has_gone(const NativeThread *t)
{
    return t->kernel_id && jm_kernel_call(__NR_tgkill, jm_process_id(), t->kernel_id, 0, 0, 0) == -ESRCH;
}

void jm_native_end_threads(void)
{
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

void jm_native_thread_begins(NativeThread *t, const NativeRegisters *registers)
{
    t->kernel_id = jm_thread_id();
    for (UInt id = 1; id < n_used; id++) // the kernel gives numbers again
        if (&threads[id] != t && threads[id].kernel_id == t->kernel_id) {
            threads[id].kernel_id = 0;
            event_thread_ended(id);
        }
    t->registers = registers;
    running = t;
    jm_native_thread = t;
    event_thread_began(t->id);
}

void jm_native_thread_not_begun(NativeThread *t)
{
    t->kernel_id = 0;
    event_thread_ended(t->id);
}

// ---- the recorder's stack ------------------------------------------------------------------------------------

#define STACK_BYTES ((SizeT)1 << 20)

Addr jm_native_stack_end;

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
    NativeThread *t = jm_native_new_thread();
    t->is_recording = True;
    jm_native_thread_begins(t, registers);
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

Bool jm_native_begin(const NativeRegisters *registers)
{
    NativeThread *t = jm_native_thread;
    if (UNLIKELY(jm_native_state != NATIVE_RECORDS))
        return False;
    if (UNLIKELY(t && t->is_recording)) {
        jm_native_n_missed++;
        return False;
    }
    if (LIKELY(t != NULL))
        t->is_recording = True;
    jm_native_lock();
    if (UNLIKELY(jm_native_state != NATIVE_RECORDS)) {
        jm_native_unlock();
        if (t)
            t->is_recording = False;
        return False;
    }
    if (UNLIKELY(!t))
        jm_native_on_own_stack(adopt, (void *)registers);
    t = jm_native_thread;
    running = t;
    t->registers = registers;
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
    NativeThread *t = running;
    t->registers = NULL;
    running = NULL;
    jm_native_unlock();
    t->is_recording = False;
}

void jm_native_fork_in_child(void)
{
    NativeThread *t = running;
    for (UInt id = 1; id < n_used; id++)
        if (&threads[id] != t)
            threads[id] = (NativeThread){.id = id};
    t->kernel_id = jm_thread_id();
    lock = 1; // nobody waits in the child
}

// ---- host.h --------------------------------------------------------------------------------------------------

UInt host_n_threads(void)
{
    return MAX_THREADS + 1;
}

ThreadId host_thread(void)
{
    return running ? running->id : 1;
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

void host_frame_registers(ThreadId tid, UWord *fp, UWord *link)
{
    *fp = registers_of(tid)->word[JM_REG_FP];
#if defined(__aarch64__)
    *link = registers_of(tid)->word[JM_REG_RA];
#else
    *link = 0;
#endif
}

// Of the thread that records; nobody asks for another's.
UWord host_thread_pointer(ThreadId tid)
{
    UWord pointer;
#if defined(__x86_64__)
    __asm__("movq %%fs:0, %0" : "=r"(pointer)); // its first word is its own address (ABI for thread-local storage)
#else
    __asm__("mrs %0, tpidr_el0" : "=r"(pointer));
#endif
    return pointer;
}

Bool host_may_step(Addr ip)
{
    return False;
}

Bool host_step(HostFrameRegisters *frame, Addr stack_end)
{
    return False;
}
