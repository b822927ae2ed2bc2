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

// ---- events --------------------------------------------------------------------------------------------------

// A thread that no hook has seen begin.
static NativeThread *adopt(const NativeRegisters *registers)
{
    NativeThread *t = jm_native_new_thread();
    t->is_recording = True;
    jm_native_thread_begins(t, registers);
    return t;
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
        t = adopt(registers);
    running = t;
    t->registers = registers;
    if (UNLIKELY(jm_native_has_changes))
        jm_native_report_changes();
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

UInt host_stack(ThreadId tid, Addr *ips, Addr *sps, UInt max)
{
    return 0;
}

Bool host_may_step(Addr ip)
{
    return False;
}

Bool host_step(HostFrameRegisters *frame, Addr stack_end)
{
    return False;
}
