// SPDX-License-Identifier: GPL-2.0-or-later
//
// Numbers and names of threads; see thread.h. A new thread inherits its creator's name in the kernel, so a name there
// counts only if it differs.

#include "stack/thread.h"
#include "base/kernel.h"
#include "base/options.h"
#include "base/per_thread.h"
#include "base/text.h"
#include "host/host.h"
#include "trace/trace.h"

// Limit on threads with frames of their own. A program with a thread per request would fill memory with stacks that are
// too many to read.
#define MAX_THREADS 10000

typedef struct {
    UInt number; // starts at 1; 0 in a fresh record
    FrameId frame;
    Int kernel_id;
    UInt inherited; // trace string of its creator's name in the kernel
    UInt name;      // trace string last written; 0 if none
} Thread;

static void read_last_name(ThreadId tid, void *record, ThreadEnd how);

static PerThread threads = JM_PER_THREAD("jm.thread", Thread, read_last_name);
static UInt n_threads;
static FrameId frame_of_further; // for threads beyond the limit

// A thread's name in the kernel as a trace string; 0 if it has none or does not exist.
static UInt name_in_kernel(Int kernel_id)
{
    HChar path[64];
    jm_format(path, sizeof path, "/proc/self/task/%d/comm", kernel_id);
    HChar *text = jm_text_read_file(path, sizeof path), *rest;
    const HChar *name = text ? jm_text_word(text, "\n", &rest) : NULL;
    UInt string = name ? jm_trace_string(name) : 0;
    host_free(text);
    return string;
}

// Called first by the thread's creator.
static Thread *thread_of(ThreadId tid)
{
    Thread *t = JM_OF_THREAD(&threads, Thread, tid);
    if (t->number)
        return t;
    t->number = ++n_threads;
    t->inherited = name_in_kernel(jm_thread_id());
    if (t->number <= MAX_THREADS)
        t->frame = jm_symbol_thread_frame(t->number);
    else if (!frame_of_further)
        frame_of_further = jm_symbol_thread_frame(0);
    t->frame = t->frame ? t->frame : frame_of_further;
    return t;
}

FrameId jm_thread_frame(ThreadId tid)
{
    return thread_of(tid)->frame;
}

static void write_name(Thread *t)
{
    UInt name = name_in_kernel(t->kernel_id);
    if (!name || name == t->inherited || name == t->name || t->number > MAX_THREADS)
        return;
    t->name = name;
    jm_trace_thread(t->number, name);
}

static void read_last_name(ThreadId tid, void *record, ThreadEnd how)
{
    if (how == THREAD_EXITED && ((Thread *)record)->number)
        write_name(record);
}

void jm_thread_hear_names(Bool sees_pages)
{
    for (ThreadId tid = 1; jm_options.threads && tid < host_n_threads(); tid++) {
        Thread *t = JM_OF_THREAD(&threads, Thread, tid);
        if (t->number)
            write_name(t);
    }
}

void jm_thread_is_created(ThreadId tid)
{
    thread_of(tid);
}

void jm_thread_begins(ThreadId tid)
{
    thread_of(tid)->kernel_id = jm_thread_id();
}

void jm_thread_leaves(ThreadId tid)
{
    write_name(thread_of(tid));
}
