// SPDX-License-Identifier: GPL-2.0-or-later
//
// Keeps the open regions of each thread and selects which are recorded. Totals are written at both ends of a recorded
// region, so that its maximum is exact.

#include "events/region.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/per_thread.h"
#include "base/table.h"
#include "events/snapshot.h"
#include "trace/trace.h"

#define MAX_NAMES 8192
#define MAX_OPEN  4096 // per thread
#define ALL_TOLD  256  // regions recorded per name; from there on half as many in each doubling of their number

typedef struct {
    ULong hash;
    UInt string;   // the name's id in the trace
    ULong n_begun; // regions begun, or marks set
    ULong n_ended;
    ULong time; // total of ended regions
    Bool has_untold, changed;
} Name;

typedef struct {
    RegionName name;
    Bool is_told;
    ULong tag;
    ULong begin;
} Open;

static Table names = JM_TABLE("jm.region", Name); // the reserved record 0: of names beyond MAX_NAMES

static Name *name_at(RegionName id)
{
    return jm_table_at(&names, id);
}

static Index name_index = JM_INDEX("jm.region");

RegionName jm_region_name(const HChar *text)
{
    ULong hash = jm_trace_text_hash(text);
    IndexSlot *slot = JM_INDEX_FIND(&name_index, hash, id, name_at(id)->hash == hash);
    if (slot->entry || names.n > MAX_NAMES)
        return slot->entry;
    RegionName id = jm_index_put(&name_index, slot, jm_table_add(&names));
    name_at(id)->hash = hash;
    name_at(id)->string = jm_trace_string(text);
    return id;
}

static Bool is_next_told(const Name *name)
{
    ULong step = 1;
    while (name->n_begun / step >= ALL_TOLD)
        step *= 2;
    return name->n_begun % step == 0;
}

static void thread_ended(ThreadId tid, void *record, ThreadEnd how);

static PerThread open_of = JM_PER_THREAD("jm.region", Array *, thread_ended); // arrays of Open, innermost last

static Array *open_in(ThreadId tid)
{
    Array **open = JM_OF_THREAD(&open_of, Array *, tid);
    if (!*open)
        *open = jm_array_new("jm.region", sizeof(Open));
    return *open;
}

Bool jm_region_is_name(UWord id)
{
    return id > 0 && id < names.n;
}

void jm_region_mark(RegionName id)
{
    Name *name = name_at(id);
    if (id && is_next_told(name))
        jm_trace_mark(jm_clock_now(), name->string);
    name->n_begun++;
}

void jm_region_begin(ThreadId tid, RegionName id, ULong tag)
{
    Array *open = open_in(tid);
    if (jm_array_n(open) >= MAX_OPEN) {
        name_at(0)->n_begun++;
        return;
    }
    Name *name = name_at(id);
    Open fresh = {id, id && is_next_told(name), tag, jm_clock_now()};
    name->n_begun++;
    jm_array_add(open, &fresh);
    if (!fresh.is_told) {
        name->has_untold = True;
        return;
    }
    jm_snapshot_write_totals(fresh.begin);
    jm_trace_region_begin(fresh.begin, tid, name->string);
}

static Bool is_inside(Array *open, Word at, RegionName name)
{
    while (at-- > 0)
        if (((const Open *)jm_array_at(open, at))->name == name)
            return True;
    return False;
}

static void end_at(ThreadId tid, Word at)
{
    Array *open = open_in(tid);
    Open ended = *(Open *)jm_array_at(open, at);
    jm_array_remove(open, at);
    Name *name = name_at(ended.name);
    ULong now = jm_clock_now();
    name->n_ended++;
    if (!is_inside(open, at, ended.name)) // a region of the same name includes this time already
        name->time += now - ended.begin;
    name->changed = True;
    if (!ended.is_told)
        return;
    jm_snapshot_write_totals(now);
    jm_trace_region_end(now, tid, name->string);
}

// Ends the open regions of a thread that exits. Regions stay open if the program ends inside them; in a forked child
// the regions left by other threads are the parent's.
static void thread_ended(ThreadId tid, void *record, ThreadEnd how)
{
    Array *open = *(Array **)record;
    if (!open)
        return;
    for (Word i = jm_array_n(open); how == THREAD_EXITED && i-- > 0;)
        end_at(tid, i);
    jm_array_delete(open);
}

// Ends the innermost region with that name or tag; there may be none.
static void end_innermost(ThreadId tid, Bool by_tag, ULong what)
{
    Array *open = open_in(tid);
    for (Word i = jm_array_n(open); i-- > 0;) {
        const Open *region = jm_array_at(open, i);
        if ((by_tag ? region->tag : region->name) == what) {
            end_at(tid, i);
            return;
        }
    }
}

void jm_region_end_named(ThreadId tid, RegionName name)
{
    end_innermost(tid, False, name);
}

void jm_region_end_tagged(ThreadId tid, ULong tag)
{
    end_innermost(tid, True, tag);
}

UInt jm_region_depth(ThreadId tid, ULong tag)
{
    Array *open = open_in(tid);
    UInt depth = 0;
    for (Word i = 0; i < jm_array_n(open); i++)
        depth += ((Open *)jm_array_at(open, i))->tag == tag;
    return depth;
}

void jm_region_write_sums(void)
{
    for (RegionName id = 1; id < names.n; id++) {
        Name *name = name_at(id);
        if (name->has_untold && name->changed)
            jm_trace_region_sum(name->string, name->n_ended, name->time);
        name->changed = False;
    }
    if (names.n > 1)
        jm_trace_nonzero("regions-left-out", name_at(0)->n_begun);
}
