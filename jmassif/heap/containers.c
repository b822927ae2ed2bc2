// SPDX-License-Identifier: GPL-2.0-or-later
//
// Names and elements of large containers; see containers.h. Variables that keep them are found from their holders,
// since not every container is tracked by the collector, and none knows its name.

#include "heap/containers.h"
#include "base/options.h"
#include "heap/blocks.h"
#include "python/objects.h"
#include "trace/trace.h"

#define LEAST_ELEMENTS  64 // from here on the storage is a block of malloc, and not in an arena
#define MOST_CONTAINERS 1024

typedef struct {
    Addr type; // the majority's, if there is one
    UWord lead, n;
} Majority;

// Boyer and Moore's vote.
static void vote(Addr element, void *context)
{
    Majority *m = context;
    const Addr type = jm_python_type(element);
    if (m->lead == 0)
        m->type = type;
    m->lead = m->type == type ? m->lead + 1 : m->lead - 1;
}

static void count(Addr element, void *context)
{
    Majority *m = context;
    m->n += jm_python_type(element) == m->type;
}

#define MAX_TEXT 200

static UInt class_string(Addr type)
{
    HChar name[MAX_TEXT];
    jm_python_copy_class(type, name, sizeof name);
    return jm_trace_string(name);
}

static Addr seen[MOST_CONTAINERS];
static UInt n_seen;

static void write_container(Addr holder, Addr name, Addr value)
{
    UWord n;
    Block block;
    const Addr storage = jm_python_storage(value, &n);
    if (!storage || n < LEAST_ELEMENTS || n_seen == MOST_CONTAINERS || !jm_blocks_find(storage, &block) ||
        !block.account)
        return;
    for (UInt i = 0; i < n_seen; i++)
        if (seen[i] == storage)
            return;
    seen[n_seen++] = storage;
    Majority m = {0};
    jm_python_each_value(value, vote, &m);
    jm_python_each_value(value, count, &m);
    HChar text[MAX_TEXT], of[MAX_TEXT];
    jm_python_copy_text(name, text, sizeof text);
    const HChar *kind = jm_python_copy_holder(holder, of, sizeof of);
    jm_trace_container(block.account, n, m.n, class_string(jm_python_type(value)), class_string(m.type),
                       jm_trace_string(text), kind, jm_trace_string(of));
}

static Bool look_at(Addr object, Addr type)
{
    jm_python_each_named(object, type, write_container);
    return False;
}

void jm_containers_write(void)
{
    n_seen = 0;
    if (jm_options.heap) // else no storage has an account
        jm_python_each_object(look_at, False);
}
