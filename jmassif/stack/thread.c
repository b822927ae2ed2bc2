// SPDX-License-Identifier: GPL-2.0-or-later
//
// Numbers and names of threads; see thread.h. A new thread inherits its creator's name in the kernel, so a name there
// counts only if it differs. Python's name is that of the thread's threading.Thread, found by the thread's identity in
// threading._active, the module's table of running threads. The program may free the module's dictionary, or any object
// in it, at any time, so each use checks its identity first.

#include "stack/thread.h"
#include "base/client_memory.h"
#include "base/kernel.h"
#include "base/libc.h"
#include "base/options.h"
#include "base/per_thread.h"
#include "base/text.h"
#include "host/host.h"
#include "python/code.h"
#include "python/objects.h"
#include "python/python.h"
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
    Bool is_named_by_python;
    // Its threading.Thread; 0 until found. The type detects another object at its address.
    Addr python, python_type, python_name; // python_name: the str that was last read
    UInt n_tries;
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

// ---- Python's names ------------------------------------------------------------------------------------------

// A thread appears in threading._active soon after it begins, or never if another library or language began it.
#define EAGER_TRIES 64

// A search visits all objects and takes milliseconds, so limit the searches in programs without threading.
#define MAX_SEARCHES 16

#define MAX_NAME 256

static Addr module_dict; // threading.__dict__
static UInt n_searches;

static Bool is_of_threading(Addr dict)
{
    return jm_python_is_text(jm_python_item(dict, "__name__"), "threading") && jm_python_item(dict, "_active");
}

static void look_at(Addr object, Addr type)
{
    if (!module_dict && jm_python_is_named(type, "dict") && is_of_threading(object))
        module_dict = object;
}

// threading._active; 0 if it is not found.
static Addr running_threads(Bool may_search)
{
    if (module_dict && !is_of_threading(module_dict))
        module_dict = 0;
    if (!module_dict && may_search && n_searches < MAX_SEARCHES) {
        n_searches++;
        jm_python_each_object(look_at);
    }
    return module_dict ? jm_python_item(module_dict, "_active") : 0;
}

// ---- finding the thread's object -----------------------------------------------------------------------------

typedef struct {
    Addr reg;
    Addr found;
} Sought;

// Identities are ints of one or two digits of 30 bits (Include/cpython/longintrepr.h). Since 3.12 the word with the
// number of digits has three flags too.
#define INT_SIZE   16
#define INT_DIGITS 24

static UWord number(Addr object)
{
    Addr runtime, interpreter;
    UWord n_digits;
    UInt low, high;
    const PythonLayout *layout = jm_python_interpreter(&runtime, &interpreter);
    if (!layout || !jm_python_is_named(jm_python_type(object), "int") || !jm_read_word(object + INT_SIZE, &n_digits) ||
        !jm_read_uint(object + INT_DIGITS, &low) || !jm_read_uint(object + INT_DIGITS + sizeof low, &high))
        return 0;
    if (layout->version >= 0x30c)
        n_digits >>= 3;
    return n_digits == 1 ? low : n_digits == 2 ? (UWord)high << 30 | low : 0;
}

// threading makes a _DummyThread for a thread that it did not begin. It outlives the thread and has no name of
// interest.
static void compare(Addr thread, void *context)
{
    Sought *sought = context;
    if (!sought->found && !jm_python_is_named(jm_python_type(thread), "_DummyThread") &&
        jm_python_is_identity(number(jm_python_attribute(thread, "_ident")), sought->reg))
        sought->found = thread;
}

static void find(ThreadId tid, Thread *t, Bool may_search)
{
    Sought sought = {host_thread_pointer(tid), 0};
    Addr running = running_threads(may_search);
    if (!running)
        return;
    jm_python_each_value(running, compare, &sought);
    t->python = sought.found;
    t->python_type = jm_python_type(sought.found);
    t->python_name = 0;
}

// ---- the thread's name ---------------------------------------------------------------------------------------

// `is_at_leisure`: detects a new name at the address of the old one too.
static void read_name(Thread *t, Bool is_at_leisure)
{
    static HChar text[MAX_NAME];
    Addr runtime, interpreter;
    Str str;
    if (jm_python_type(t->python) != t->python_type) {
        t->python = t->n_tries = 0;
        return;
    }
    Addr name = jm_python_attribute(t->python, "_name");
    if (name == t->python_name && !is_at_leisure)
        return;
    t->python_name = name;
    if (!name || !jm_python_is_named(jm_python_type(name), "str") ||
        !jm_python_find_str(jm_python_interpreter(&runtime, &interpreter), name, &str))
        return;
    jm_python_copy_str(&str, text, sizeof text);
    if (*text && !jm_text_equal(text, "MainThread")) { // a default, not chosen by the program
        t->is_named_by_python = True;
        tell_name(t, jm_trace_string(text));
    }
}

static void hear_from_python(ThreadId tid, Thread *t, Bool is_at_leisure)
{
    if (!t->python) {
        UInt n = t->n_tries++;
        if (!is_at_leisure && n >= EAGER_TRIES && !jm_is_power_of_two(n))
            return;
        find(tid, t, !is_at_leisure && jm_is_power_of_two(n));
    }
    if (t->python)
        read_name(t, is_at_leisure);
}

// ---- both names ----------------------------------------------------------------------------------------------

static void hear_from_kernel(Thread *t)
{
    UInt name = t->is_named_by_python ? 0 : name_in_kernel(t->kernel_id);
    if (name && name != t->inherited)
        tell_name(t, name);
}

static void read_last_name(ThreadId tid, void *record, ThreadEnd how)
{
    if (how == THREAD_EXITED && ((Thread *)record)->number)
        hear_from_kernel(record);
}

void jm_thread_runs_python(ThreadId tid)
{
    Thread *t = thread_of(tid);
    if (t->number > 1)
        hear_from_python(tid, t, False);
}

void jm_thread_hear_names(Bool sees_pages)
{
    for (ThreadId tid = 1; jm_options.threads && tid < host_n_threads(); tid++) {
        Thread *t = JM_OF_THREAD(&threads, Thread, tid);
        if (!t->number)
            continue;
        if (jm_options.python)
            hear_from_python(tid, t, True);
        hear_from_kernel(t);
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
    hear_from_kernel(thread_of(tid));
}

// The forking thread continues as the child's only one, with its name and number but a new kernel id.
void jm_thread_after_fork_in_child(ThreadId tid)
{
    jm_thread_begins(tid);
}
