// SPDX-License-Identifier: GPL-2.0-or-later
//
// A stack of API calls for each thread; see scope.h. When a call ends, its growth is added to the enclosing call, so
// each record covers everything inside its call. Beyond MAX_TOLD records per name, calls are summed instead.

#include "calls/scope.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/libc.h"
#include "base/per_thread.h"
#include "host/host.h"
#include "trace/trace.h"

#define MAX_DEPTH 64
#define MAX_TOLD  64 // records per name; further calls are summed

typedef struct {
    UInt id;
    UInt name;
    HostFrameRegisters at;
    ULong begin;
    Bool is_told;
    Bool has_base;
    StackBase base;
    UInt marks;
    Growth growth[N_KINDS];
} Scope;

typedef struct {
    Scope *scopes;
    UInt depth;
} ThreadScopes;

typedef struct {
    UInt name;
    ULong n_told;
    ULong n_summed;
    ULong time;
    Growth growth[N_KINDS];
    Bool changed;
} ScopeSum;

static Array sums = JM_ARRAY("jm.scope", ScopeSum);
static UInt n_scopes;

static PerThread threads = JM_PER_THREAD("jm.scope", ThreadScopes, jm_per_thread_free);

static inline ThreadScopes *thread_scopes(ThreadId tid)
{
    return JM_OF_THREAD(&threads, ThreadScopes, tid);
}

static inline Scope *innermost(ThreadId tid)
{
    const ThreadScopes *t = jm_per_thread_has_any(&threads) ? thread_scopes(tid) : NULL;
    return t && t->depth ? &t->scopes[t->depth - 1] : NULL;
}

// The innermost scope's base; NULL outside of all calls.
static StackBase *capture_bases(ThreadId tid)
{
    ThreadScopes *t = thread_scopes(tid);
    StackBase *outer = NULL;
    for (UInt depth = 0; depth < t->depth; depth++) {
        Scope *s = &t->scopes[depth];
        if (!s->has_base)
            jm_stack_capture_base(tid, &s->at, outer, !s->is_told, &s->base);
        s->has_base = True;
        outer = &s->base;
    }
    return outer;
}

static void add_growth(Growth *to, const Growth *from)
{
    for (Kind k = 0; k < N_KINDS; k++) {
        to[k].bytes += from[k].bytes;
        to[k].blocks += from[k].blocks;
    }
}

static void tell(ThreadId tid, const Scope *s, UInt parent)
{
    ScopeSum *sum = jm_array_find_or_add(&sums, &(ScopeSum){.name = s->name}, sizeof s->name);
    ULong now = jm_clock_now();
    if (sum->n_told < MAX_TOLD) {
        sum->n_told++;
        jm_trace_scope(s->id, parent, tid, s->begin, now, s->base.node, s->name, s->growth);
        return;
    }
    sum->n_summed++;
    sum->time += now - s->begin;
    sum->changed = True;
    add_growth(sum->growth, s->growth);
}

// Id of the innermost open scope that will have a record; 0 if there is none.
static UInt told_around(const ThreadScopes *t)
{
    for (UInt depth = t->depth; depth; depth--)
        if (t->scopes[depth - 1].is_told)
            return t->scopes[depth - 1].id;
    return 0;
}

static void pop(ThreadId tid, Bool has_ended)
{
    ThreadScopes *t = thread_scopes(tid);
    Scope *s = &t->scopes[--t->depth];
    Scope *outer = t->depth ? &t->scopes[t->depth - 1] : NULL;
    if (has_ended && s->is_told)
        tell(tid, s, told_around(t));
    if (!outer)
        return;
    add_growth(outer->growth, s->growth);
    outer->marks |= s->marks;
}

// Pop scopes that longjmp or an exception has left. The stack grows down, so a call in progress has a higher stack
// pointer than its callees.
static void drop_left(ThreadId tid, Addr sp)
{
    ThreadScopes *t = thread_scopes(tid);
    while (t->depth && t->scopes[t->depth - 1].at.sp <= sp)
        pop(tid, False);
}

void jm_scope_enter(ThreadId tid, UInt name, Bool is_told)
{
    ThreadScopes *t = thread_scopes(tid);
    if (!t->scopes)
        t->scopes = host_alloc("jm.scope", MAX_DEPTH * sizeof *t->scopes);
    drop_left(tid, host_sp(tid));
    if (t->depth == MAX_DEPTH)
        pop(tid, False);
    Scope *s = &t->scopes[t->depth++];
    memset(s, 0, sizeof *s);
    s->id = ++n_scopes;
    s->name = name;
    s->at = host_frame(tid);
    s->is_told = is_told;
    if (!is_told)
        return;
    capture_bases(tid);
    s->begin = jm_clock_now();
}

void jm_scope_leave(ThreadId tid, UInt name, Bool has_ended)
{
    ThreadScopes *t = thread_scopes(tid);
    UInt depth = t->depth;
    while (depth && t->scopes[depth - 1].name != name)
        depth--;
    if (!depth)
        return;
    while (t->depth > depth)
        pop(tid, False);
    pop(tid, has_ended);
}

UInt jm_scope_depth(ThreadId tid)
{
    return jm_per_thread_has_any(&threads) ? thread_scopes(tid)->depth : 0;
}

UInt jm_scope_current(ThreadId tid)
{
    const Scope *s = innermost(tid);
    return s ? s->id : 0;
}

NodeId jm_scope_node(ThreadId tid)
{
    const StackBase *base = jm_scope_depth(tid) ? capture_bases(tid) : NULL;
    return base ? base->node : 0;
}

NodeId jm_scope_capture(ThreadId tid, Bool *ignored)
{
    if (jm_scope_depth(tid))
        drop_left(tid, host_sp(tid) - 1); // the call's own wrapper may capture: keep its scope
    return jm_stack_capture(tid, jm_scope_depth(tid) ? capture_bases(tid) : NULL, ignored);
}

void jm_scope_grow(ThreadId tid, Kind kind, Long bytes, Long blocks)
{
    Scope *s = innermost(tid);
    if (s) {
        s->growth[kind].bytes += bytes;
        s->growth[kind].blocks += blocks;
    }
}

void jm_scope_mark(ThreadId tid, UInt marks)
{
    Scope *s = innermost(tid);
    if (s)
        s->marks |= marks;
}

Bool jm_scope_has(ThreadId tid, UInt mark)
{
    const Scope *s = innermost(tid);
    return s && (s->marks & mark);
}

void jm_scope_write_sums(void)
{
    for (Word i = 0; i < jm_array_n(&sums); i++) {
        ScopeSum *s = jm_array_at(&sums, i);
        if (s->changed)
            jm_trace_scope_sum(s->name, s->n_summed, s->time, s->growth);
        s->changed = False;
    }
}
