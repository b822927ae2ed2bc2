// SPDX-License-Identifier: GPL-2.0-or-later
//
// Unwinding is most of an allocation's cost, and the core's unwinder searches its tables again for most frames. So a
// walk goes from frame to frame by cached rules (table.h), which need only the stack and frame pointers, and
// reuses unchanged frames of the thread's last walk.
//
// For a frame without a rule, step.c finds the caller from the same two pointers. If it needs other registers,
// the stack is walked again with all of them.

#include "unwind/unwind.h"
#include "base/client_memory.h"
#include "base/libc.h"
#include "base/per_thread.h"
#include "symbols/symbol.h"
#include "unwind/step.h"
#include "unwind/table.h"

static UInt n_certain; // of the current walk, as in Walk

// Fills at most JM_MAX_FRAMES entries and returns their number. Slower than by rules.
static UInt walk_anew(ThreadId tid, const HostFrameRegisters *from, Addr *ips, Addr *sps)
{
    const Bool is_now = !from || (from->ip == host_ip(tid) && from->sp == host_sp(tid));
    Cursor c = {.ip = is_now ? host_ip(tid) : from->ip, .is_innermost = True};
    for (UInt i = 0; i < JM_N_REGISTERS && is_now; i++)
        jm_register_set(&c.registers, i, host_register(tid, i));
    if (!is_now) {
        jm_register_set(&c.registers, JM_REG_SP, from->sp);
        jm_register_set(&c.registers, JM_REG_FP, from->fp);
    }
    Step step = AT_CALLER;
    UInt n = 0;
    n_certain = JM_MAX_FRAMES;
    while (step == AT_CALLER && n < JM_MAX_FRAMES) {
        ips[n] = c.ip;
        sps[n] = c.registers.value[JM_REG_SP];
        step = jm_unwind_step(&c);
        n += step != NO_FRAME;
        if (c.scanned && n < n_certain)
            n_certain = n;
    }
    return n;
}

// Marks a frame that was not left by slots; no real slot is 1, since slots are multiples of eight.
#define NO_SLOTS 1

typedef struct {
    Addr ip, sp, fp;
    UnwindSlots slots;
} WalkedFrame;

// A thread's last stack. The arrays are filled from their ends, innermost first, so outer frames stay in place while
// inner ones come and go. A frame that recurs with the same pointers has the same rule, and the same caller if its
// return address and saved frame pointer are unchanged. Comparing these costs much less than finding the caller,
// because no frame waits for the one before it.
typedef struct {
    Addr *ips, *sps, *fps;
    UnwindSlots *slots;
    UInt capacity;
    UInt n;
} LastWalk;

static void release(ThreadId tid, void *record, ThreadEnd how)
{
    LastWalk *last = record;
    host_free(last->ips);
    host_free(last->sps);
    host_free(last->fps);
    host_free(last->slots);
}

static PerThread last_walks = JM_PER_THREAD("jm.unwind", LastWalk, release);

static void *grow(void *old, UInt capacity, UInt n_kept, UInt new_capacity, SizeT size)
{
    // One extra entry: the 0 behind the outermost frame's stack pointer.
    UChar *grown = host_alloc_zeroed("jm.unwind", new_capacity + 1, size);
    if (old)
        memcpy(grown + (new_capacity - n_kept) * size, (UChar *)old + (capacity - n_kept) * size, n_kept * size);
    host_free(old);
    return grown;
}

static void make_room(LastWalk *last, UInt n_kept, UInt n)
{
    if (n <= last->capacity)
        return;
    UInt old = last->capacity;
    last->capacity = 2 * n;
    last->ips = grow(last->ips, old, n_kept, last->capacity, sizeof *last->ips);
    last->sps = grow(last->sps, old, n_kept, last->capacity, sizeof *last->sps);
    last->fps = grow(last->fps, old, n_kept, last->capacity, sizeof *last->fps);
    last->slots = grow(last->slots, old, n_kept, last->capacity, sizeof *last->slots);
}

static inline WalkedFrame frame_at(const LastWalk *last, UInt i)
{
    return (WalkedFrame){last->ips[i], last->sps[i], last->fps[i], last->slots[i]};
}

// `cfa`: start of the caller's frame; `link`: contents of the link register.
static inline Addr return_address(const UnwindSlots *slots, Addr cfa, Addr link)
{
    return slots->ra ? *(const Addr *)(cfa + slots->ra) : link;
}

// Frame `i` of the last walk is unchanged; returns the first frame from there outwards that has another caller now, or
// the outermost. Stops at `top`, since memory beyond may have been unmapped; along rules, stack pointers only grow.
// Frames from `waiting` on are known to be unchanged.
static UInt end_of_run(const LastWalk *last, UInt i, Addr link, Addr top, UInt waiting)
{
    const Addr *ips = last->ips, *sps = last->sps, *fps = last->fps;
    const UnwindSlots *slots = last->slots;
    UInt outermost = last->capacity - 1;
    while (outermost > i && sps[outermost] > top)
        outermost--;
    for (; i < outermost; i++, link = 0) {
        if (i == waiting)
            return last->capacity - 1;
        Addr cfa = sps[i + 1];
        if (slots[i].fp == NO_SLOTS || return_address(&slots[i], cfa, link) != ips[i + 1] + 1 ||
            (slots[i].fp && *(const Addr *)(cfa + slots[i].fp) != fps[i + 1]))
            break;
    }
    return i;
}

typedef struct {
    WalkedFrame f;
    Bool is_call, is_innermost; // as in Cursor
    Addr link;                  // contents of the link register in the innermost frame (arm64); 0 in all others
    Addr top;                   // end of the stack's mapping
    Bool scanned;               // as in Cursor
} Walker;

static Step leave_without_rule(Walker *w, const UnwindRule *rule, UnwindSlots *slots)
{
    Cursor c = {.ip = w->f.ip,
                .is_call = w->is_call,
                .is_innermost = w->is_innermost,
                .is_partial = True,
                .has_no_table = rule->type == RULE_NO_TABLE};
    Registers *r = &c.registers;
    jm_register_set(r, JM_REG_SP, w->f.sp);
    jm_register_set(r, JM_REG_FP, w->f.fp);
    if (w->link)
        jm_register_set(r, JM_REG_RA, w->link);
    Step step = jm_unwind_step(&c);
    w->scanned |= c.scanned;
    if (step != AT_CALLER)
        return step;
    if (!jm_register_is_known(r, JM_REG_FP))
        return LACKS_REGISTER;
    // A caller found by the frame pointer can be compared on the next walk, as one found by a rule. One found otherwise
    // cannot: the next scan may end elsewhere although this place is unchanged.
    const Long fp = c.saved_at - r->value[JM_REG_SP];
    if (!w->is_call || !c.saved_at || fp >= 0 || !jm_set_slots(slots, fp, fp + (Long)sizeof(Addr)))
        slots->fp = NO_SLOTS;
    w->f = (WalkedFrame){.ip = c.ip, .sp = r->value[JM_REG_SP], .fp = r->value[JM_REG_FP]};
    w->is_call = c.is_call;
    w->is_innermost = False;
    w->link = 0;
    w->top = jm_readable_end(w->f.sp);
    return AT_CALLER;
}

// Moves from the frame to its caller. `*slots` gets the slots of that step, or NO_SLOTS.
static inline Step leave(Walker *w, UnwindSlots *slots)
{
    WalkedFrame *f = &w->f;
    const UnwindRule *rule = jm_unwind_rule(f->ip);
    if (rule->type == RULE_OUTERMOST)
        return AT_OUTERMOST;
    if (rule->type < RULE_FROM_SP) {
        slots->fp = NO_SLOTS;
        return leave_without_rule(w, rule, slots);
    }
    Addr cfa = (rule->type == RULE_FROM_SP ? f->sp : f->fp) + rule->cfa_offset;
    SizeT size = cfa - f->sp;
    *slots = rule->slots;
    if (f->sp >= w->top || size > w->top - f->sp || size < (SizeT)-slots->ra || size < (SizeT)-slots->fp ||
        !(slots->ra || w->link)) {
        slots->fp = NO_SLOTS;
        return leave_without_rule(w, rule, slots);
    }
    Addr to = return_address(slots, cfa, w->link);
    if (to <= 1)
        return AT_OUTERMOST;
    if (slots->fp)
        f->fp = *(const Addr *)(cfa + slots->fp);
    f->ip = to - 1;
    f->sp = cfa;
    w->is_call = True;
    w->is_innermost = False;
    w->link = 0;
    return AT_CALLER;
}

static WalkedFrame fresh[JM_MAX_FRAMES]; // frames of the current walk that may be new, innermost first

// The caller's place in the last walk, if the frame before it is that of a preload library's function; else the end.
static UInt find_waiting(const LastWalk *last, const Waiting *caller)
{
    const UInt end = last->capacity;
    if (!caller || !caller->n || caller->n >= last->n)
        return end;
    const UInt i = end - caller->n;
    const Bool is_it = last->ips[i] == caller->ip && last->sps[i] == caller->sp;
    return is_it && jm_symbol_is_preload(last->ips[i - 1]) ? i : end;
}

// False if a frame needs registers other than the stack and frame pointers.
static Bool walk_by_rules(const HostFrameRegisters *from, LastWalk *last, const Waiting *caller, UInt *n_same,
                          Bool *is_inside)
{
    *is_inside = False;
    Walker w = {.f = {.ip = from->ip, .sp = from->sp, .fp = from->fp}, .link = from->link, .is_innermost = True};
    w.top = jm_readable_end(w.f.sp);
    n_certain = JM_MAX_FRAMES;
    const UInt end = last->capacity, waiting = find_waiting(last, caller);
    UInt at = end - last->n; // index of the last walk's first frame that is not further in than w.f
    UInt run = end;          // frames `run` to `at` of the last walk are unchanged, and `at` is w.f; `end`: no such run
    UInt n = 0;
    Step step = AT_CALLER;
    while (n < JM_MAX_FRAMES) {
        while (at < end && last->sps[at] < w.f.sp)
            at++;
        if (at < end && last->sps[at] == w.f.sp && last->ips[at] == w.f.ip && last->fps[at] == w.f.fp &&
            n + (end - at) <= JM_MAX_FRAMES) {
            run = at;
            // The call goes on if its own frame is unchanged, and not the innermost.
            const Bool may_wait = run + (n == 0) < waiting;
            at = end_of_run(last, run, w.link, w.top, may_wait ? waiting : end);
            *is_inside = may_wait && at >= waiting && !w.scanned;
            if (at > run) {
                w.f = frame_at(last, at);
                w.link = 0;
                w.is_call = True;
                w.is_innermost = False;
            }
        }
        WalkedFrame left = w.f;
        step = leave(&w, &left.slots);
        if (step == LACKS_REGISTER)
            return False;
        if (run < end && step == AT_OUTERMOST && at + 1 == end)
            break;
        for (; run < at; run++)
            fresh[n++] = frame_at(last, run);
        run = end;
        *is_inside = False;
        if (step != NO_FRAME)
            fresh[n++] = left;
        if (step != AT_CALLER)
            break;
        if (w.scanned && n < n_certain)
            n_certain = n;
        if (w.f.sp < left.sp)
            at = end - last->n; // switched stacks: search from the innermost again
    }
    *n_same = end - run;
    make_room(last, *n_same, n + *n_same);
    last->n = n + *n_same;
    UInt first = last->capacity - last->n;
    for (UInt i = 0; i < n; i++) {
        last->ips[first + i] = fresh[i].ip;
        last->sps[first + i] = fresh[i].sp;
        last->fps[first + i] = fresh[i].fp;
        last->slots[first + i] = fresh[i].slots;
    }
    return True;
}

// Buffers for walks that are not kept for their thread.
static Addr any_ips[JM_MAX_FRAMES], any_sps[JM_MAX_FRAMES + 1];

Walk jm_unwind(ThreadId tid, const HostFrameRegisters *from, const Waiting *caller)
{
    HostFrameRegisters now = {0};
    if (!from)
        now = host_frame(tid);
    LastWalk *last = JM_OF_THREAD(&last_walks, LastWalk, tid);
    UInt n_same;
    Bool is_inside;
    if (!walk_by_rules(from ? from : &now, last, caller, &n_same, &is_inside)) {
        last->n = 0;
        UInt n = walk_anew(tid, from, any_ips, any_sps);
        any_sps[n] = 0;
        return (Walk){any_ips, any_sps, n, 0, n_certain < n ? n_certain : n, False};
    }
    UInt first = last->capacity - last->n;
    return (Walk){last->ips + first, last->sps + first, last->n, n_same, n_certain < last->n ? n_certain : last->n,
                  is_inside};
}

static void forget(void *record)
{
    ((LastWalk *)record)->n = 0;
}

void jm_unwind_forget(void)
{
    jm_unwind_rules_forget();
    jm_per_thread_each(&last_walks, forget);
}

Bool jm_unwind_mapping_changed(Addr start, SizeT bytes, Bool is_code)
{
    if (!jm_unwind_rules_concern(start, bytes))
        return False;
    if (is_code)
        jm_unwind_rules_object_mapped();
    jm_per_thread_each(&last_walks, forget);
    return True;
}
