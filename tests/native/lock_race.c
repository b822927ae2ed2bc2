// SPDX-License-Identifier: GPL-2.0-or-later
//
// The native recorder's lock and threads under ThreadSanitizer: threads count in a variable that the lock alone
// guards, with BEYOND also outside of it. They end together: a record that is used again has been left before its
// thread ended, which only the kernel knows. The rest of the recorder is left out.

#include "base/kernel.h"
#include "host/native/pending.h"
#include "host/native/thread.h"

#include <pthread.h>
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
void jm_message(const HChar *format, ...)
{
    fputs(format, stderr);
}
UInt jm_format(HChar *to, SizeT size, const HChar *format, ...)
{
    return snprintf(to, size, "/proc/self/stat");
}
void *host_alloc(const HChar *tag, SizeT bytes)
{
    return malloc(bytes);
}
Bool jm_native_is_process(void)
{
    return True;
}

#define ROUNDS 20000
static ULong n_events;

// Not on the recorder's own stack, which ThreadSanitizer would take for one thread's.
static void event(void)
{
    NativeRegisters registers = {0};
    registers.word[JM_REG_SP] = (UWord)__builtin_frame_address(0);
    NativeThread *t = jm_native_thread;
    if (!t) {
        jm_native_lock(jm_thread_id());
        jm_native_thread_begins(jm_native_new_thread(), &registers);
        n_events++;
        jm_native_end();
    } else if (jm_native_begin(&registers)) {
        n_events++;
        jm_native_end();
    }
}

static pthread_barrier_t end;

static void *work(void *unused)
{
    for (UInt i = 0; i < ROUNDS; i++)
        event();
#ifdef BEYOND
    n_events++;
#endif
    pthread_barrier_wait(&end);
    return NULL;
}

int main(void)
{
    pthread_t threads[8];
    pthread_barrier_init(&end, NULL, 8);
    jm_native_state = NATIVE_RECORDS;
    for (UInt i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (UInt i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    printf("%llu\n", n_events);
    return 0;
}
