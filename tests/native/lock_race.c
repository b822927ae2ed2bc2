// SPDX-License-Identifier: GPL-2.0-or-later
//
// The native recorder's lock, threads, ledger, live blocks and memory under ThreadSanitizer: threads allocate and free,
// one forks, and each child sums up what it got. With BEYOND one event of each thread is outside of the lock; with
// UNLOCKED_FORK the lock is not held during a fork. Threads end together: a record that is used again has been left
// before its thread ended, which only the kernel knows. The rest of the recorder is left out.

#include "attribution/kind.h"
#include "base/clock.h"
#include "base/kernel.h"
#include "heap/blocks.h"
#include "heap/slab.h"
#include "host/host.h"
#include "host/native/pending.h"
#include "host/native/thread.h"
#include "ledger/ledger.h"

#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

Bool jm_native_has_changes;
UInt jm_native_n_pending;
void jm_native_report_changes(void) {}
void jm_native_pending_settle(CallPlace place) {}
void jm_native_signals_hold(ULong *before) {}
void jm_native_signals_let_go(NativeThread *t) {}
void event_thread_created(ThreadId id) {}
void event_thread_began(ThreadId id) {}
void event_thread_ended(ThreadId id) {}
void jm_print(HostOutput kind, const HChar *format, ...)
{
    fputs(format, stderr);
}
UInt jm_format(HChar *to, SizeT size, const HChar *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const Int n = vsnprintf(to, size, format, arguments);
    va_end(arguments);
    return n;
}
void host_fail(const HChar *condition, const HChar *file, UInt line, const HChar *function)
{
    fprintf(stderr, "%s:%u: %s\n", file, line, condition);
    _exit(99);
}
ULong jm_clock_cached(void)
{
    return 0;
}
ULong jm_clock_traffic_bytes;
Bool jm_slab_find(Addr address, SlabBlock *block)
{
    return False;
}
Bool jm_native_is_process(void)
{
    return True;
}

#define N_THREADS 8
#define N_LIVE    16
#define N_FORKS   100
#define ROUNDS    20000
static ULong n_events;

// A block takes the place of one that the thread made N_LIVE rounds ago; now and then a stack is new.
static void allocate(UInt thread, UInt round)
{
    static __thread AccountId account;
    Addr address = ((Addr)(thread + 1) << 20) + round % N_LIVE * 64;
    Block block;
    if (!account || round % 64 == 0)
        account = jm_ledger_open(thread * ROUNDS + round + 1, KIND_HEAP, 1);
    if (jm_blocks_take(address, False, &block))
        jm_ledger_debit(block.account, block.bytes);
    jm_ledger_credit(account, round + 1);
    if (round % 8 == 0)
        sched_yield(); // others run, or fork, in the middle of an event
    jm_blocks_add(address, (Block){.bytes = round + 1, .account = account}, &block);
    n_events++;
}

static ULong bytes_of_blocks;

static void add_block(Addr address, ULong bytes)
{
    bytes_of_blocks += bytes;
}

// Return whether blocks, accounts and the total agree.
static Bool agrees(void)
{
    ULong bytes = 0;
    bytes_of_blocks = 0;
    jm_blocks_each(False, 0, add_block);
    jm_ledger_mark_all_changed();
    for (UInt i = 0; i < jm_ledger_n_changed(); i++)
        bytes += jm_ledger_balance(jm_ledger_changed(i)).live_bytes;
    return bytes == bytes_of_blocks && bytes == jm_ledger_total(SIDE_HOST);
}

// Not on the recorder's own stack, which ThreadSanitizer would take for one thread's.
static void begin(void)
{
    static __thread NativeRegisters registers;
    registers.word[JM_REG_SP] = (UWord)__builtin_frame_address(0);
    if (jm_native_thread) {
        if (!jm_native_begin(&registers))
            host_fail("begins", __FILE__, __LINE__, __func__);
    } else {
        jm_native_lock(jm_thread_id());
        jm_native_thread_begins(jm_native_new_thread(), &registers);
    }
}

static void fork_once(UInt thread, UInt round)
{
    Int status = 0;
    begin();
#ifdef UNLOCKED_FORK
    jm_native_end();
#else
    jm_native_fork_begins();
#endif
    const Int pid = fork();
    if (pid == 0) {
#ifndef UNLOCKED_FORK
        if (!jm_native_fork_ended())
            _exit(0); // given to others, as without progress for long
        jm_native_fork_in_child();
        allocate(thread, round);
        jm_native_end();
        begin();
        allocate(thread, round + 1);
#endif
        _exit(agrees() ? 0 : 3);
    }
#ifndef UNLOCKED_FORK
    if (jm_native_fork_ended())
        jm_native_end();
    else
        jm_native_leave_unlocked(jm_native_thread);
#endif
    if (waitpid(pid, &status, 0) != pid || status)
        fprintf(stderr, "a child's ledger is half done: %x\n", status);
}

static pthread_barrier_t end;

static void *work(void *number)
{
    const UInt thread = (UWord)number;
    for (UInt i = 0; i < ROUNDS; i++) {
        begin();
        allocate(thread, i);
        jm_native_end();
        if (thread == 0 && i % (ROUNDS / N_FORKS) == 0)
            fork_once(thread, i + 1);
    }
#ifdef BEYOND
    pthread_barrier_wait(&end); // a fork during the race would find it half done
    if (thread != 1)
        begin();
    allocate(thread, 0);
    if (thread != 1)
        jm_native_end();
#endif
    pthread_barrier_wait(&end);
    return NULL;
}

int main(void)
{
    pthread_t threads[N_THREADS];
    pthread_barrier_init(&end, NULL, N_THREADS);
    jm_native_state = NATIVE_RECORDS;
    for (UWord i = 0; i < N_THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (UInt i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%llu %llu %d\n", n_events, jm_ledger_total(SIDE_HOST), agrees());
    return 0;
}
