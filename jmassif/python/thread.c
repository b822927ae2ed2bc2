// SPDX-License-Identifier: GPL-2.0-or-later
//
// Find threading's module dictionary once, among all objects that the garbage collector tracks; see thread.h.
// The program may free it, or any object in it, at any time, so each use checks its identity first.

#include "python/thread.h"
#include "base/client_memory.h"
#include "base/libc.h"
#include "base/text.h"
#include "host/host.h"
#include "python/code.h"
#include "python/objects.h"
#include "python/python.h"

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

static void find(ThreadId tid, PythonThread *known, Bool may_search)
{
    Sought sought = {host_thread_pointer(tid), 0};
    Addr running = running_threads(may_search);
    if (!running)
        return;
    jm_python_each_value(running, compare, &sought);
    known->object = sought.found;
    known->type = jm_python_type(sought.found);
    known->name = 0;
}

static Bool is_power_of_two(UInt n)
{
    return (n & (n - 1)) == 0;
}

// ---- the thread's name ---------------------------------------------------------------------------------------

static const HChar *read_name(PythonThread *known, Bool is_at_leisure)
{
    static HChar text[MAX_NAME];
    Addr runtime, interpreter;
    Str str;
    if (jm_python_type(known->object) != known->type) {
        memset(known, 0, sizeof *known);
        return NULL;
    }
    Addr name = jm_python_attribute(known->object, "_name");
    if (name == known->name && !is_at_leisure)
        return NULL;
    known->name = name;
    if (!name || !jm_python_is_named(jm_python_type(name), "str") ||
        !jm_python_find_str(jm_python_interpreter(&runtime, &interpreter), name, &str))
        return NULL;
    jm_python_copy_str(&str, text, sizeof text);
    return *text && !jm_text_equal(text, "MainThread") ? text : NULL; // a default, not chosen by the program
}

const HChar *jm_python_thread_name(ThreadId tid, PythonThread *known, Bool is_at_leisure)
{
    if (!known->object) {
        UInt n = known->n_tries++;
        if (!is_at_leisure && n >= EAGER_TRIES && !is_power_of_two(n))
            return NULL;
        find(tid, known, !is_at_leisure && is_power_of_two(n));
    }
    return known->object ? read_name(known, is_at_leisure) : NULL;
}
