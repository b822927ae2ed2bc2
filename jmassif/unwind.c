// SPDX-License-Identifier: GPL-2.0-or-later
//
// Unwinding is most of what an allocation costs, and the core's unwinder searches its tables anew for most frames. What
// an address needs is little: its caller's frame begins so many bytes above the stack or frame pointer, and the return
// address and the caller's frame pointer are kept in these slots, or still in their registers. Such a rule follows from
// the object file's unwind table (.eh_frame; DWARF 5, section 6.4), is read once, and is kept by address.
//
// Rules of any other form (signal frames, the procedure linkage table, code without a table), stacks that are not the
// thread's own, and whatever cannot be right are left to the core, with the whole stack: nothing is guessed.

#include "unwind.h"
#include "client_memory.h"
#include "options.h"
#include "stats.h"
#include "table.h"
#include "trace.h"

#include "pub_tool_guest.h"

#define MAX_FRAMES 8192

#if defined(VGA_amd64) || defined(VGA_arm64)
#define HAS_UNWINDER
#endif

static ULong n_differing;
static ULong n_by_core;
static ULong n_stacks;

#if defined(HAS_UNWINDER)

// ---- processors ----------------------------------------------------------------------------------------------

// `Slots` tells where the caller's registers are kept, as offsets from where its frame begins; 0: still in the
// register.
#if defined(VGA_amd64)

// Numbers of DWARF registers (System V ABI for AMD64, figure 3.36).
#define REG_FP   6
#define REG_SP   7
#define REG_RA   16
#define GUEST_FP guest_RBP

typedef struct {
    Short fp;
} Slots;

static Bool set_slots(Slots *slots, Int fp, Int ra)
{
    slots->fp = fp;
    return slots->fp == fp && ra == -(Int)sizeof(Addr); // where calls put it
}

static inline Int ra_slot(const Slots *slots)
{
    return -(Int)sizeof(Addr);
}

// The core takes such a return address for the end of the stack.
static inline Bool is_end(Addr ra)
{
    return ra <= 1;
}

#elif defined(VGA_arm64)

// DWARF for the Arm 64-bit Architecture, section 4.1. A call leaves the return address in the link register, and there
// it stays while a function calls none.
#define REG_FP     29
#define REG_SP     31
#define REG_RA     30
#define GUEST_FP   guest_X29
#define GUEST_LINK guest_X30

typedef struct {
    Int fp, ra;
} Slots;

static Bool set_slots(Slots *slots, Int fp, Int ra)
{
    *slots = (Slots){fp, ra};
    return True;
}

static inline Int ra_slot(const Slots *slots)
{
    return slots->ra;
}

static inline Bool is_end(Addr ra)
{
    return False; // the core shows what has no code as a frame
}

#endif

// ---- rules ---------------------------------------------------------------------------------------------------

typedef enum { RULE_OTHER, RULE_OUTERMOST, RULE_FROM_SP, RULE_FROM_FP } RuleType;

typedef struct {
    Addr ip;
    Int cfa_offset; // where the caller's frame begins, from the stack or frame pointer
    Slots slots;
    UChar type; // RuleType
} Rule;

#define RULE_BITS 14
#define N_RULES   (1u << RULE_BITS)

static Rule rules[N_RULES]; // each at the one place that its hash gives it

// ---- unwind tables -------------------------------------------------------------------------------------------

typedef struct {
    Addr at, end;
    Bool failed; // it went beyond the end, or what is there is not known
} Reader;

static ULong take(Reader *r, UInt bytes)
{
    ULong value = 0;
    if (bytes > r->end - r->at) {
        r->failed = True;
        r->at = r->end;
        return 0;
    }
    VG_(memcpy)(&value, (const void *)r->at, bytes);
    r->at += bytes;
    return value;
}

static ULong take_uleb(Reader *r)
{
    ULong value = 0;
    for (UInt shift = 0; shift < 64; shift += 7) {
        ULong byte = take(r, 1);
        value |= (byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
    r->failed = True;
    return 0;
}

static Long take_sleb(Reader *r)
{
    ULong value = 0;
    for (UInt shift = 0; shift < 64;) {
        ULong byte = take(r, 1);
        value |= (byte & 0x7f) << shift;
        shift += 7;
        if (!(byte & 0x80))
            return byte & 0x40 && shift < 64 ? (Long)(value | ~0ULL << shift) : (Long)value;
    }
    r->failed = True;
    return 0;
}

static void skip(Reader *r, ULong bytes)
{
    if (bytes > r->end - r->at)
        r->failed = True;
    else
        r->at += bytes;
}

// An entry of the table, without its length.
static Bool open_entry(Addr address, Reader *r)
{
    UInt bytes;
    if (!jm_read_uint(address, &bytes) || bytes < 4 || bytes >= 0xfffffff0 || !jm_is_readable(address + 4, bytes))
        return False;
    *r = (Reader){address + 4, address + 4 + bytes, False};
    return True;
}

#define PCREL_SDATA4 0x1b // how linkers and compilers write a function's address (LSB, "DWARF Extensions")

typedef struct {
    ULong code_align;
    Long data_align;
    Reader instructions;
    Bool has_augmentation;
} Common;

static Bool read_common(Addr address, Common *c)
{
    Reader r;
    if (!open_entry(address, &r) || take(&r, 4) != 0)
        return False;
    UInt version = take(&r, 1);
    HChar augmentation[8];
    UInt n = 0;
    do {
        augmentation[n] = take(&r, 1);
    } while (augmentation[n] && ++n < sizeof augmentation && !r.failed);
    if (n == sizeof augmentation || (version != 1 && version != 3))
        return False;
    c->code_align = take_uleb(&r);
    c->data_align = take_sleb(&r);
    if ((version == 1 ? take(&r, 1) : take_uleb(&r)) != REG_RA)
        return False;
    c->has_augmentation = augmentation[0] == 'z';
    UInt pointer_encoding = 0;
    if (c->has_augmentation) {
        ULong bytes = take_uleb(&r);
        Reader data = r;
        skip(&r, bytes);
        for (const HChar *a = augmentation + 1; *a; a++) {
            if (*a == 'R')
                pointer_encoding = take(&data, 1);
            else if (*a == 'L')
                take(&data, 1);
            else if (*a == 'P') {
                // Its size: 4 for the formats udata4 and sdata4, which all others but absolute ones take.
                UInt encoding = take(&data, 1);
                if ((encoding & 7) != 3)
                    return False;
                skip(&data, 4);
            } else
                return False; // S: a signal's frame
        }
        if (data.failed)
            return False;
    } else if (augmentation[0]) {
        return False;
    }
    c->instructions = r;
    return !r.failed && pointer_encoding == PCREL_SDATA4;
}

// What is known of a register: where the caller's value is.
typedef enum { KEPT, UNDEFINED, SAVED, ELSEWHERE } Where;

typedef struct {
    Where where;
    Long offset; // from where the caller's frame begins
} Register;

typedef struct {
    ULong cfa_register;
    Long cfa_offset;
    Bool cfa_is_other; // an expression
    Register fp, ra;
} State;

#define MAX_REMEMBERED 8

typedef struct {
    const Common *common;
    State initial;
    State state;
    State remembered[MAX_REMEMBERED];
    UInt n_remembered;
    Addr location;
} Machine;

static void set(Machine *m, ULong reg, Where where, Long offset)
{
    if (reg == REG_FP)
        m->state.fp = (Register){where, offset};
    else if (reg == REG_RA)
        m->state.ra = (Register){where, offset};
    else if (reg == REG_SP)
        m->state.cfa_is_other = True; // the caller's is another one than where its frame begins
}

static void restore(Machine *m, ULong reg)
{
    if (reg == REG_FP)
        m->state.fp = m->initial.fp;
    else if (reg == REG_RA)
        m->state.ra = m->initial.ra;
}

// Runs the instructions up to those for addresses beyond `ip` (DWARF 5, section 6.4.2).
static Bool run(Machine *m, Reader r, Addr ip)
{
    const Common *c = m->common;
    State *s = &m->state;
    while (r.at < r.end && !r.failed) {
        UInt op = take(&r, 1);
        ULong low = op & 0x3f, reg;
        ULong advance = 0;
        switch (op & 0xc0 ? op & 0xc0 : op) {
        case 0x40: // advance_loc
            advance = low;
            break;
        case 0x80: // offset
            set(m, low, SAVED, (Long)take_uleb(&r) * c->data_align);
            break;
        case 0xc0: // restore
            restore(m, low);
            break;
        case 0x00: // nop
            break;
        case 0x02: // advance_loc1
            advance = take(&r, 1);
            break;
        case 0x03: // advance_loc2
            advance = take(&r, 2);
            break;
        case 0x04: // advance_loc4
            advance = take(&r, 4);
            break;
        case 0x05: // offset_extended
            reg = take_uleb(&r);
            set(m, reg, SAVED, (Long)take_uleb(&r) * c->data_align);
            break;
        case 0x06: // restore_extended
            restore(m, take_uleb(&r));
            break;
        case 0x07: // undefined
            set(m, take_uleb(&r), UNDEFINED, 0);
            break;
        case 0x08: // same_value
            set(m, take_uleb(&r), KEPT, 0);
            break;
        case 0x09: // register
            set(m, take_uleb(&r), ELSEWHERE, 0);
            take_uleb(&r);
            break;
        case 0x0a: // remember_state
            if (m->n_remembered == MAX_REMEMBERED)
                return False;
            m->remembered[m->n_remembered++] = *s;
            break;
        case 0x0b: // restore_state
            if (m->n_remembered == 0)
                return False;
            *s = m->remembered[--m->n_remembered];
            break;
        case 0x0c: // def_cfa
            s->cfa_register = take_uleb(&r);
            s->cfa_offset = take_uleb(&r);
            s->cfa_is_other = False;
            break;
        case 0x0d: // def_cfa_register
            s->cfa_register = take_uleb(&r);
            break;
        case 0x0e: // def_cfa_offset
            s->cfa_offset = take_uleb(&r);
            break;
        case 0x0f: // def_cfa_expression
            skip(&r, take_uleb(&r));
            s->cfa_is_other = True;
            break;
        case 0x10: // expression
        case 0x16: // val_expression
            set(m, take_uleb(&r), ELSEWHERE, 0);
            skip(&r, take_uleb(&r));
            break;
        case 0x11: // offset_extended_sf
            reg = take_uleb(&r);
            set(m, reg, SAVED, take_sleb(&r) * c->data_align);
            break;
        case 0x12: // def_cfa_sf
            s->cfa_register = take_uleb(&r);
            s->cfa_offset = take_sleb(&r) * c->data_align;
            s->cfa_is_other = False;
            break;
        case 0x13: // def_cfa_offset_sf
            s->cfa_offset = take_sleb(&r) * c->data_align;
            break;
#if defined(VGA_arm64)
        case 0x2d: // AARCH64_negate_ra_state: VEX passes over what signs return addresses, so none is signed
            break;
#endif
        case 0x2e: // GNU_args_size
            take_uleb(&r);
            break;
        default:
            return False;
        }
        m->location += advance * c->code_align;
        if (m->location > ip)
            return !r.failed;
    }
    return !r.failed;
}

// As in Slots.
static Bool find_slot(const Register *reg, Int *slot)
{
    *slot = reg->where == SAVED ? reg->offset : 0;
    return reg->where == KEPT ||
           (reg->where == SAVED && reg->offset == *slot && *slot < 0 && *slot % (Int)sizeof(Addr) == 0);
}

static Bool find_rule(Addr ip, Rule *rule)
{
    Reader r;
    Addr entry = jm_find_unwind_entry(ip);
    Common common;
    if (!entry || !open_entry(entry, &r))
        return False;
    Addr here = r.at;
    ULong back = take(&r, 4);
    if (back == 0 || !read_common(here - back, &common))
        return False;
    Addr at = r.at;
    Addr start = at + (Long)(Int)take(&r, 4);
    ULong bytes = take(&r, 4);
    if (ip < start || ip - start >= bytes)
        return False;
    if (common.has_augmentation)
        skip(&r, take_uleb(&r));
    Machine m;
    VG_(memset)(&m, 0, sizeof m);
    m.common = &common;
    m.location = start;
    if (r.failed || !run(&m, common.instructions, ~(Addr)0))
        return False;
    m.initial = m.state;
    m.location = start;
    if (!run(&m, r, ip))
        return False;
    const State *s = &m.state;
    if (s->ra.where == UNDEFINED) {
        rule->type = RULE_OUTERMOST;
        return True;
    }
    Int fp, ra;
    if (s->cfa_is_other || s->cfa_offset != (Int)s->cfa_offset || s->cfa_offset < 0 || !find_slot(&s->fp, &fp) ||
        !find_slot(&s->ra, &ra) || !set_slots(&rule->slots, fp, ra))
        return False;
    rule->cfa_offset = s->cfa_offset;
    rule->type = s->cfa_register == REG_SP ? RULE_FROM_SP : s->cfa_register == REG_FP ? RULE_FROM_FP : RULE_OTHER;
    return True;
}

static inline const Rule *rule_of(Addr ip)
{
    // Multiplicative hashing by the golden ratio (Knuth): each frame waits for this, and one multiplication will do.
    Rule *rule = &rules[ip * 0x9e3779b97f4a7c15ULL >> (64 - RULE_BITS)];
    if (rule->ip != ip) {
        *rule = (Rule){.ip = ip, .type = RULE_OTHER};
        if (!find_rule(ip, rule))
            rule->type = RULE_OTHER;
    }
    return rule;
}

// ---- walking -------------------------------------------------------------------------------------------------

typedef struct {
    Addr ip, sp, fp;
    Slots slots;
} Frame;

// Each thread's stack as it was last, innermost first. A frame that is there again, with its pointers, is left by the
// same rule: its caller is the same if the return address and the saved frame pointer are. To compare them is much less
// than to find the caller, because no frame waits for the one before it.
typedef struct {
    Frame *frames;
    UInt n;
    UInt capacity;
} LastWalk;

static LastWalk *last_walks;

// `cfa`: where the caller's frame begins; `link`: what the link register holds.
static inline Addr return_address(const Slots *slots, Addr cfa, Addr link)
{
    return ra_slot(slots) ? *(const Addr *)(cfa + ra_slot(slots)) : link;
}

static inline Bool has_same_caller(const Frame *f, Addr link)
{
    Addr cfa = f[1].sp;
    return return_address(&f->slots, cfa, link) == f[1].ip + 1 &&
           (!f->slots.fp || *(const Addr *)(cfa + f->slots.fp) == f[1].fp);
}

static void remember(LastWalk *last, const Frame *frames, UInt n)
{
    if (n > last->capacity) {
        last->capacity = n < 64 ? 64 : 2 * n;
        last->frames = VG_(realloc)("jm.unwind", last->frames, last->capacity * sizeof *frames);
    }
    VG_(memcpy)(last->frames, frames, n * sizeof *frames);
    last->n = n;
}

static Frame fresh[MAX_FRAMES]; // of the walk that is under way

// 0: not all of the stack can be unwound by rules.
static UInt unwind_by_rules(ThreadId tid, Addr *ips, Addr *sps, UInt max)
{
    Frame f = {.ip = VG_(get_IP)(tid), .sp = VG_(get_SP)(tid)};
    VG_(get_shadow_regs_area)(tid, (UChar *)&f.fp, 0, offsetof(VexGuestArchState, GUEST_FP), sizeof f.fp);
    // The innermost frame's return address, if it is there. It is no other's: they have called.
    Addr link = 0;
#if defined(GUEST_LINK)
    VG_(get_shadow_regs_area)(tid, (UChar *)&link, 0, offsetof(VexGuestArchState, GUEST_LINK), sizeof link);
#endif
    // What lies between the stack pointer and the end of the thread's own stack is mapped. Of a stack that has just
    // begun the core shows one frame.
    const Addr top = VG_(thread_get_stack_max)(tid);
    const SizeT just_begun = 520 - VG_STACK_REDZONE_SZB;
    if (f.sp > top || top - f.sp >= VG_(thread_get_stack_size)(tid) || top - f.sp < just_begun || (f.sp & 7))
        return 0;
    if (!last_walks)
        last_walks = VG_(calloc)("jm.unwind", VG_N_THREADS, sizeof *last_walks);
    LastWalk *last = &last_walks[tid];
    if (max > MAX_FRAMES)
        max = MAX_FRAMES;
    UInt n = 0, at = 0; // in the last walk: its first frame that is not further in than this one
    for (;;) {
        while (at < last->n && last->frames[at].sp < f.sp)
            at++;
        const Frame *known = &last->frames[at];
        if (at < last->n && known->sp == f.sp && known->ip == f.ip && known->fp == f.fp) {
            for (; at + 1 < last->n && n + 1 < max && has_same_caller(known, link); at++, known++, link = 0)
                fresh[n++] = *known;
            f = *known;
        }
        fresh[n] = f;
        const Rule *rule = rule_of(f.ip);
        if (rule->type == RULE_OUTERMOST || n + 1 == max)
            break;
        if (rule->type == RULE_OTHER)
            return 0;
        Addr cfa = (rule->type == RULE_FROM_SP ? f.sp : f.fp) + rule->cfa_offset;
        SizeT size = cfa - f.sp;
        const Slots *slots = &rule->slots;
        if (size > top - f.sp || (size & 7) || size < (SizeT)-ra_slot(slots) || size < (SizeT)-slots->fp)
            return 0;
        fresh[n].slots = *slots;
        if (slots->fp)
            f.fp = *(const Addr *)(cfa + slots->fp);
        f.ip = return_address(slots, cfa, link);
        f.sp = cfa;
        link = 0;
        if (is_end(f.ip))
            break;
        f.ip--;
        n++;
    }
    n++;
    for (UInt i = 0; i < n; i++) {
        ips[i] = fresh[i].ip;
        sps[i] = fresh[i].sp;
    }
    remember(last, fresh, n);
    return n;
}

// Below a function whose table says that it is the outermost the core goes on, by what lies there.
static Bool is_what_the_core_finds(ThreadId tid, const Addr *ips, const Addr *sps, UInt n, UInt max)
{
    static Addr *core_ips, *core_sps;
    if (!core_ips) {
        core_ips = VG_(malloc)("jm.unwind", max * sizeof *core_ips);
        core_sps = VG_(malloc)("jm.unwind", max * sizeof *core_sps);
    }
    UInt n_core = VG_(get_StackTrace)(tid, core_ips, max, core_sps, NULL, 0);
    return (n_core == n || (n_core > n && rule_of(ips[n - 1])->type == RULE_OUTERMOST)) &&
           VG_(memcmp)(core_ips, ips, n * sizeof *ips) == 0 && VG_(memcmp)(core_sps, sps, n * sizeof *sps) == 0;
}

#endif // HAS_UNWINDER

static UInt unwind_by_core(ThreadId tid, Addr *ips, Addr *sps, UInt max)
{
    n_by_core++;
    UInt n = VG_(get_StackTrace)(tid, ips, max, sps, NULL, 0);
    // Without unwind tables the core takes whatever it finds for return addresses. No program has code in the upper
    // half, and nothing that lies beyond such a frame is one.
    for (UInt i = 1; i < n; i++)
        if (ips[i] >> 63)
            return i;
    return n;
}

UInt jm_unwind(ThreadId tid, Addr *ips, Addr *sps, UInt max)
{
    n_stacks++;
#if defined(HAS_UNWINDER)
    // Then the core joins frames.
    UInt n = VG_(clo_merge_recursive_frames) == 0 ? unwind_by_rules(tid, ips, sps, max) : 0;
    if (n == 0)
        return unwind_by_core(tid, ips, sps, max);
    if (jm_options.check_unwinding)
        n_differing += !is_what_the_core_finds(tid, ips, sps, n, max);
    return n;
#else
    return unwind_by_core(tid, ips, sps, max);
#endif
}

void jm_unwind_forget(void)
{
#if defined(HAS_UNWINDER)
    VG_(memset)(rules, 0, sizeof rules);
    for (ThreadId tid = 0; last_walks && tid < VG_N_THREADS; tid++)
        last_walks[tid].n = 0;
#endif
}

void jm_unwind_thread_exit(ThreadId tid)
{
#if defined(HAS_UNWINDER)
    if (last_walks && last_walks[tid].frames) {
        VG_(free)(last_walks[tid].frames);
        last_walks[tid] = (LastWalk){NULL, 0, 0};
    }
#endif
}

void jm_unwind_write_counters(void)
{
    if (!jm_options.check_unwinding)
        return;
    jm_trace_counter("unwound", n_stacks);
    jm_trace_counter("unwound-by-core", n_by_core);
    jm_trace_counter("unwound-differently", n_differing);
}

void jm_unwind_stats(void)
{
#if defined(HAS_UNWINDER)
    UInt n = 0;
    for (UInt i = 0; i < N_RULES; i++)
        n += rules[i].ip != 0;
    jm_stats_row("static", "rules for unwinding", n, sizeof rules + sizeof fresh);
    SizeT bytes = last_walks ? VG_N_THREADS * sizeof *last_walks : 0;
    for (ThreadId tid = 0; last_walks && tid < VG_N_THREADS; tid++)
        bytes += last_walks[tid].capacity * sizeof(Frame);
    jm_stats_row("jm.unwind", "threads, with their last stacks", VG_N_THREADS, bytes);
#endif
}
