// SPDX-License-Identifier: GPL-2.0-or-later
//
// Numbers and names of threads; see thread.h. A new thread inherits its creator's name, so a name counts only when it
// is set. Programs set one by prctl, or by a write to /proc/self/task/TID/comm, which the C library uses for other
// threads.

#include "stack/thread.h"
#include "base/array.h"
#include "base/client_memory.h"
#include "base/kernel.h"
#include "base/libc.h"
#include "base/options.h"
#include "base/per_thread.h"
#include "base/text.h"
#include "host/host.h"
#include "python/thread.h"
#include "trace/trace.h"

#include <asm/unistd.h>
#include <sys/prctl.h>

// Limit on threads with frames of their own. A program with a thread per request would fill memory with stacks that are
// too many to read.
#define MAX_THREADS 10000

#define MAX_PATH 64

typedef struct {
    UInt number; // starts at 1; 0 in a fresh record
    FrameId frame;
    Int kernel_id;
    UInt name; // trace string last written; 0 if none
    Bool is_named_by_python;
    PythonThread python;
    Int naming_fd; // descriptor of the comm file of thread naming_id
    Int naming_id; // 0 if there is none
} Thread;

// A thread that is named before it begins.
typedef struct {
    Int kernel_id;
    UInt name;
} EarlyName;

static PerThread threads = JM_PER_THREAD("jm.thread", Thread, NULL);
static UInt n_threads;
static FrameId frame_of_further; // for threads beyond the limit
static Array *early_names;       // elements are EarlyName

static Thread *thread_of(ThreadId tid)
{
    Thread *t = JM_OF_THREAD(&threads, Thread, tid);
    if (t->number)
        return t;
    t->number = ++n_threads;
    if (t->number > MAX_THREADS) {
        if (!frame_of_further)
            frame_of_further = jm_symbol_thread_frame(0);
        t->frame = frame_of_further;
    } else {
        t->frame = jm_symbol_thread_frame(t->number);
    }
    return t;
}

FrameId jm_thread_frame(ThreadId tid)
{
    return thread_of(tid)->frame;
}

static void tell_name(Thread *t, UInt name)
{
    if (name == t->name || t->number > MAX_THREADS)
        return;
    t->name = name;
    jm_trace_thread(t->number, name);
}

// ---- names from Python ---------------------------------------------------------------------------------------

static void hear_from_python(Thread *t, const HChar *name)
{
    if (!name)
        return;
    t->is_named_by_python = True;
    tell_name(t, jm_trace_string(name));
}

void jm_thread_runs_python(ThreadId tid)
{
    Thread *t = thread_of(tid);
    if (t->number > 1)
        hear_from_python(t, jm_python_thread_name(tid, &t->python));
}

void jm_thread_hear_names(Bool sees_pages)
{
    if (!jm_options.threads || !jm_options.python)
        return;
    for (ThreadId tid = 1; tid < host_n_threads(); tid++) {
        Thread *t = JM_OF_THREAD(&threads, Thread, tid);
        if (t->number)
            hear_from_python(t, jm_python_thread_name_now(tid, &t->python));
    }
}

// ---- names from the kernel -----------------------------------------------------------------------------------

// The thread's name as a trace string; 0 if it has none or does not exist.
static UInt name_in_kernel(Int kernel_id)
{
    HChar path[MAX_PATH];
    jm_format(path, sizeof path, "/proc/self/task/%d/comm", kernel_id);
    HChar *text = jm_text_read_file(path, MAX_PATH);
    if (!text)
        return 0;
    SizeT n = strlen(text);
    while (n && text[n - 1] == '\n')
        text[--n] = 0;
    UInt name = n ? jm_trace_string(text) : 0;
    host_free(text);
    return name;
}

static void hear_from_kernel(Thread *t, UInt name)
{
    if (name && !t->is_named_by_python)
        tell_name(t, name);
}

// Keep the name of a thread that has not run yet: its kernel id belongs to no known thread.
static void named_early(Int kernel_id, UInt name)
{
    EarlyName early = {kernel_id, name};
    if (!name)
        return;
    if (!early_names)
        early_names = jm_array_new("jm.thread", sizeof(EarlyName));
    jm_array_add(early_names, &early);
}

static void was_named(Int kernel_id)
{
    for (ThreadId tid = 1; tid < host_n_threads(); tid++) {
        Thread *t = JM_OF_THREAD(&threads, Thread, tid);
        if (t->number && t->kernel_id == kernel_id) {
            hear_from_kernel(t, name_in_kernel(kernel_id));
            return;
        }
    }
    named_early(kernel_id, name_in_kernel(kernel_id));
}

void jm_thread_is_created(ThreadId tid)
{
    thread_of(tid);
}

void jm_thread_begins(ThreadId tid)
{
    Thread *t = thread_of(tid);
    t->kernel_id = jm_thread_id();
    for (Word i = early_names ? jm_array_n(early_names) - 1 : -1; i >= 0; i--) {
        EarlyName *early = jm_array_at(early_names, i);
        if (early->kernel_id == t->kernel_id) {
            hear_from_kernel(t, early->name);
            jm_array_remove(early_names, i);
        }
    }
}

// Kernel id of the thread in a path such as /proc/self/task/TID/comm; 0 for other paths.
static Int named_by(Addr path_at)
{
    HChar path[MAX_PATH];
    if (!jm_read_string(path_at, path, sizeof path) || strncmp(path, "/proc/", 6) != 0)
        return 0;
    SizeT n = strlen(path);
    if (n < 11 || !jm_text_equal(path + n - 5, "/comm"))
        return 0;
    path[n - 5] = 0;
    const HChar *whose = strrchr(path, '/') + 1;
    if (jm_text_equal(whose, "thread-self"))
        return jm_thread_id();
    return jm_text_equal(whose, "self") ? jm_process_id() : (Int)jm_text_number(whose, NULL);
}

static void opened(Thread *t, Addr path, Int fd)
{
    Int kernel_id = named_by(path);
    if (kernel_id || fd == t->naming_fd)
        t->naming_id = kernel_id;
    if (kernel_id)
        t->naming_fd = fd;
}

void jm_thread_after_syscall(ThreadId tid, UInt number, const UWord *args, Long res)
{
    Thread *t = JM_OF_THREAD(&threads, Thread, tid);
    if (!t->number || jm_is_error(res)) // exit comes here too, after the record is zeroed
        return;
    switch (number) {
    case __NR_prctl:
        if (args[0] == PR_SET_NAME)
            hear_from_kernel(t, name_in_kernel(jm_thread_id()));
        break;
#if defined(__NR_open)
    case __NR_open:
#endif
    case __NR_openat:
        opened(t, args[number == __NR_openat ? 1 : 0], res);
        break;
    case __NR_write:
        if (t->naming_id && args[0] == (UWord)t->naming_fd)
            was_named(t->naming_id);
        break;
    }
}

// The forking thread continues as the child's only one, with its name and number but a new kernel id.
void jm_thread_after_fork_in_child(ThreadId tid)
{
    Thread *t = thread_of(tid);
    t->kernel_id = jm_thread_id();
    t->naming_id = 0;
    if (early_names)
        jm_array_delete(early_names);
    early_names = NULL;
}
