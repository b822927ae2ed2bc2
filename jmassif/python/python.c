// SPDX-License-Identifier: GPL-2.0-or-later
//
// Walk an interpreter's frames; see python.h. The thread's state is found by the identity of the thread, not by the
// holder of the GIL: a thread keeps its frames in an operation that has released the GIL, and a thread unknown to
// Python has none.
//
// Native and Python frames are interleaved by markers. Since 3.10 every activation of the evaluation loop keeps a
// record on its own C stack (a _PyCFrame, a shim frame since 3.12), so the native frame with the record in its stack
// range is the activation. Symbols would not do: compilers move most of the loop into a nameless block. Older releases
// have no record, so their activations are matched by the evaluator's code.

#include "python/python.h"
#include "base/client_memory.h"
#include "base/libc.h"
#include "base/options.h"
#include "base/per_thread.h"
#include "base/table.h"
#include "base/text.h"
#include "host/host.h"
#include "python/code.h"
#include "python/layout.h"
#include "symbols/elf.h"
#include "trace/trace.h"
#include "unwind/table.h"
#include "unwind/unwind.h"

#define MAX_STEPS         100000 // longest chain of frames that is not taken for a cycle
#define MAX_STATES        4096   // thread states searched at most
#define MAX_STATES_OF_ONE 8

typedef struct {
    Bool is_known;
    PythonLayout layout;
    Addr runtime;     // _PyRuntime; in 3.6 _PyThreadState_Current
    Addr ending;      // a word that is not 0 while the interpreter ends; 0: not known
    Addr inside;      // an address in its object file
    SizeT frame_head; // bytes of an interpreter frame up to the last field that is read
} Interpreter;

static Interpreter python;

static struct {
    ULong unreadable;
    ULong cut;
    ULong not_interleaved;
} counters;

// ---- finding the interpreter ---------------------------------------------------------------------------------

// Releases without Py_Version (3.6 to 3.10) are recognised by symbols that are new in each.
static Bool find_version(Addr code, UInt *major, UInt *minor)
{
    UInt hex;
    Addr version = jm_find_dynamic_symbol(code, "Py_Version");
    if (version && jm_read_uint(version, &hex)) {
        *major = hex >> 24;
        *minor = hex >> 16 & 0xff;
        return True;
    }
    if (!jm_find_dynamic_symbol(code, "_PyEval_EvalFrameDefault"))
        return False;
    *major = 3;
    *minor = jm_find_dynamic_symbol(code, "Py_NewRef")           ? 10
             : jm_find_dynamic_symbol(code, "PyFrame_GetBack")   ? 9
             : jm_find_dynamic_symbol(code, "PyVectorcall_Call") ? 8
             : jm_find_dynamic_symbol(code, "_PyRuntime")        ? 7
                                                                 : 6;
    return True;
}

static void measure_frame_head(void)
{
    const PythonLayout *l = &python.layout;
    const UShort fields[] = {l->frame_code, l->frame_previous, l->frame_instruction, l->frame_copy};
    python.frame_head = jm_python_end_of(fields, sizeof fields / sizeof fields[0]);
    // Byte fields: a word at the end of the structure could reach beyond it.
    if (python.frame_head <= l->frame_owner)
        python.frame_head = l->frame_owner + 1;
    if (python.frame_head <= l->frame_is_entry)
        python.frame_head = l->frame_is_entry + 1;
}

// Offsets of `finalizing` in _PyRuntime, Include/internal/pycore_runtime.h of each release.
static Addr find_ending(Addr code)
{
    UWord offset;
    switch (python.layout.version) {
    case 0x306:
        return jm_find_dynamic_symbol(code, "_Py_Finalizing");
    case 0x307:
        return python.runtime + 8;
    case 0x308:
    case 0x309:
    case 0x30a:
        return python.runtime + 16;
    case 0x30b:
    case 0x30c:
        return python.runtime + 24;
    default: // _Py_DebugOffsets has it
        return jm_read_word(python.runtime + 32, &offset) && offset < 4096 ? python.runtime + offset : 0;
    }
}

Bool jm_python_begins_to_end(void)
{
    static Bool is_ending;
    UWord state = 0;
    if (!python.ending)
        return False;
    jm_read_word(python.ending, &state);
    Bool begins = state && !is_ending;
    is_ending = state != 0;
    return begins;
}

void jm_python_object(const HChar *path, Addr code)
{
    UInt major, minor;
    // The first object is the program, which may embed an interpreter under any name.
    static Bool is_later;
    Bool is_candidate = !is_later || strstr(jm_text_file_name(path), "python");
    is_later = True;
    if (!jm_options.python || python.is_known || !is_candidate)
        return;
    Addr runtime = jm_find_dynamic_symbol(code, "_PyRuntime");
    if (!runtime)
        runtime = jm_find_dynamic_symbol(code, "_PyThreadState_Current"); // 3.6
    if (!runtime || !find_version(code, &major, &minor))
        return;
    const PythonLayout *layout = jm_python_layout(major, minor);
    if (!layout) {
        jm_message("jmassif: Python %u.%u is not known: stacks are native only\n", major, minor);
        return;
    }
    python.layout = *layout;
    if (layout->version >= 0x30d && !jm_python_apply_debug_offsets(&python.layout, runtime)) {
        jm_message("jmassif: this build of Python %u.%u does not say how it is laid out: stacks are native only\n",
                   major, minor);
        return;
    }
    python.runtime = runtime;
    python.inside = code;
    python.ending = find_ending(code);
    measure_frame_head();
    jm_python_code_start(&python.layout, jm_find_dynamic_symbol(code, "PyCode_Type"));
    python.is_known = True;
}

// ---- the thread's states -------------------------------------------------------------------------------------

static Addr first_interpreter(void)
{
    UWord head = 0;
    if (python.layout.version == 0x306) {
        // 3.6 exports only the current thread's state; take that state's interpreter for the first.
        static Addr remembered;
        UWord current;
        if (jm_read_word(python.runtime, &current) && current)
            jm_read_word(current + python.layout.thread_interpreter, &remembered);
        return remembered;
    }
    jm_read_word(python.runtime + python.layout.interpreters_head, &head);
    return head;
}

const PythonLayout *jm_python_interpreter(Addr *runtime, Addr *interpreter)
{
    if (!python.is_known)
        return NULL;
    *runtime = python.runtime;
    *interpreter = first_interpreter();
    return &python.layout;
}

Addr jm_python_symbol(const HChar *name)
{
    return python.is_known ? jm_find_dynamic_symbol(python.inside, name) : 0;
}

// True if `id` is the identity by which Python knows the thread with this register, its pthread_self(). On x86-64 the
// two are equal. On AArch64 the register points past the C library's thread record, and the size of the record varies
// by release (glibc 2.36: 1856 bytes); the records of two threads are at least a stack apart.
static Bool is_identity(UWord id, Addr reg)
{
#if defined(__aarch64__)
    return id < reg && reg - id <= 8192;
#else
    return id == reg;
#endif
}

// All states of a thread, newest first: one for each interpreter that it has entered. States are not cached, because a
// search takes three reads a state, and a cached state may be freed or belong to another thread. Sets `*is_whole` to
// False if the list did not hold together: other threads change it.
static UInt search_states(ThreadId tid, Addr *states, UInt max, Bool *is_whole)
{
    const PythonLayout *at = &python.layout;
    Addr reg = host_thread_pointer(tid);
    UInt n = 0, steps = 0;
    UWord interp = first_interpreter(), state;
    *is_whole = True;
    while (interp && steps++ < MAX_STATES && jm_read_word(interp + at->interpreter_threads, &state)) {
        while (state && steps++ < MAX_STATES) {
            UWord id, owner;
            if (!jm_read_word(state + at->thread_id, &id) || !jm_read_word(state + at->thread_interpreter, &owner) ||
                owner != interp) {
                *is_whole = False;
                break;
            }
            if (is_identity(id, reg) && n < max)
                states[n++] = state;
            if (!jm_read_word(state + at->thread_next, &state))
                break;
        }
        if (!jm_read_word(interp + at->interpreter_next, &interp))
            break;
    }
    return n;
}

#define MAX_SEARCHES 4

static UInt find_states(ThreadId tid, Addr *states, UInt max)
{
    Bool is_whole = False;
    UInt n = 0;
    for (UInt i = 0; !n && !is_whole && i < MAX_SEARCHES; i++)
        n = search_states(tid, states, max, &is_whole);
    return n;
}

// ---- the chain of frames -------------------------------------------------------------------------------------

// The Python frames of one activation of the evaluation loop.
typedef struct {
    Addr marker;    // on the activation's C stack
    Addr link;      // of the marker, to what is further out
    UInt first, n;  // frames
    UInt n_outside; // frames of this group and all further out that are not hidden
} Group;

#define UNMARKED  0          // 3.6-3.9: matched by the evaluator's code
#define UNMATCHED (~(Addr)0) // the chain broke before its marker

typedef struct {
    Addr frame, code, previous;
    UWord instruction;
    Int at;
    Bool is_entry;
} ChainFrame;

// Frames that have changed since the last walk, innermost first.
static ChainFrame chain[JM_MAX_FRAMES];
static Group groups[JM_MAX_FRAMES];
static UInt n_chain, n_grouped, n_groups;

static void end_group(Addr marker, Addr link)
{
    if (n_groups == JM_MAX_FRAMES)
        return;
    groups[n_groups++] = (Group){.marker = marker, .link = link, .first = n_grouped, .n = n_chain - n_grouped};
    n_grouped = n_chain;
}

static void add_frame(ChainFrame f)
{
    if (n_chain == JM_MAX_FRAMES)
        counters.cut++;
    else
        chain[n_chain++] = f;
}

typedef struct {
    ChainFrame of;
    CodeParts parts;
    FrameId name; // 0 if hidden
    UInt group;
} KnownFrame;

// A thread's last chain, outermost first: what is further out stays in place while frames come and go.
typedef struct {
    KnownFrame *frames;
    Group *groups;
    UInt n, n_groups, capacity;
    UInt n_sound;   // outermost frames that the walk may find unchanged
    Bool is_single; // of one interpreter, and whole
    Bool is_native; // the last stack had no frame of it
    Bool is_placed; // the last stack had all of it, where the markers are
    ULong walk;     // its number
    ULong mappings; // jm_n_forgotten then
} LastChain;

static void release(ThreadId tid, void *record, ThreadEnd how)
{
    host_free(((LastChain *)record)->frames);
    host_free(((LastChain *)record)->groups);
}

static PerThread last_chains = JM_PER_THREAD("jm.python", LastChain, release);

static Bool is_unchanged(KnownFrame *f)
{
    const PythonLayout *l = &python.layout;
    const Addr frame = f->of.frame;
    return *(UWord *)(frame + l->frame_instruction) == f->of.instruction &&
           (*(UWord *)(frame + l->frame_code) & ~(UWord)3) == f->of.code &&
           *(UWord *)(frame + l->frame_previous) == f->of.previous &&
           (!l->frame_is_entry || *(UChar *)(frame + l->frame_is_entry) == f->of.is_entry) &&
           (jm_python_code_has(f->of.code, &f->parts) ||
            f->name == jm_python_code_frame(f->of.code, f->of.at, True, &f->parts));
}

#define MAX_ENDED 64 // frames that have ended since the last walk; after more all are read anew

// The number of the last chain's frames up to this one, if they are unchanged; else 0. Compares each with what it was:
// no frame waits for the one before it, as when they are followed. `record` is that of its activation in 3.11.
static UInt n_unchanged(LastChain *last, Addr frame, Addr record)
{
    const PythonLayout *l = &python.layout;
    UInt n = last->n_sound;
    const UInt least = n > MAX_ENDED ? n - MAX_ENDED : 0;
    if (n + jm_larger(n_chain, n_groups) >= JM_MAX_FRAMES)
        return 0;
    while (n > least && last->frames[n - 1].of.frame != frame)
        n--;
    if (n == least)
        return 0;
    UInt i = n;
    while (i && is_unchanged(&last->frames[i - 1]))
        i--;
    last->n_sound = i ? i - 1 : 0;
    UInt group = last->frames[n - 1].group + 1;
    const Bool is_cframe = l->chain == CHAIN_CFRAME_ENTRY;
    const UShort link = is_cframe ? l->cframe_previous : l->frame_previous;
    if (i || (is_cframe && last->groups[group - 1].marker != record))
        return 0;
    for (; group; group--) {
        const Group *g = &last->groups[group - 1];
        if (g->marker != UNMATCHED && *(Addr *)(g->marker + link) != g->link)
            return 0;
    }
    return n;
}

// Put the walk's frames behind the `n` outermost ones, which are unchanged. Returns the number of outermost groups that
// are; sets `*changed` to the outermost marker of the others, now or at the last walk.
static UInt keep_chain(LastChain *last, UInt n, Bool is_next, Addr *changed)
{
    UInt n_kept = n ? last->frames[n - 1].group + 1 : 0;
    if (n && (n_grouped < n_chain || last->groups[n_kept - 1].first + last->groups[n_kept - 1].n > n)) {
        const Group *joined = &last->groups[--n_kept]; // it has other frames inside
        end_group(joined->marker, joined->link);
        groups[n_groups - 1].n += n - joined->first;
    }
    *changed = !n ? ~(Addr)0 : n_kept < last->n_groups ? last->groups[n_kept].marker : 0;
    if (n_groups && groups[n_groups - 1].marker > *changed)
        *changed = groups[n_groups - 1].marker;
    const UInt n_all = n + n_chain, n_all_groups = n_kept + n_groups;
    if (jm_larger(n_all, n_all_groups) > last->capacity) {
        last->capacity = 2 * jm_larger(n_all, n_all_groups);
        last->frames = host_realloc("jm.python", last->frames, last->capacity * sizeof *last->frames);
        last->groups = host_realloc("jm.python", last->groups, last->capacity * sizeof *last->groups);
    }
    for (UInt i = 0; i < n_chain; i++) {
        const ChainFrame now = chain[i];
        const UInt to = n_all - 1 - i;
        KnownFrame *f = &last->frames[to];
        const Bool is_same = is_next && to < last->n && f->of.frame == now.frame && f->of.code == now.code;
        f->name = jm_python_code_frame(now.code, now.at, is_same, &f->parts);
        f->of = now;
    }
    for (UInt i = n_groups; i--;) {
        const UInt to = n_all_groups - 1 - i;
        Group *g = &last->groups[to];
        *g = groups[i];
        g->first = n_all - (g->first + g->n);
        g->n_outside = to ? g[-1].n_outside : 0;
        for (UInt k = g->first; k < g->first + g->n; k++) {
            last->frames[k].group = to;
            g->n_outside += last->frames[k].name != 0;
        }
    }
    last->n = n_all;
    last->n_groups = n_all_groups;
    return n_kept;
}

// Both walks stop at memory that cannot be read.

static void walk_frame_objects(Addr state)
{
    const PythonLayout *l = &python.layout;
    UWord frame, code, record = 0;
    UInt instruction;
    jm_read_word(state + l->thread_frame, &frame);
    if (l->thread_cframe)
        jm_read_word(state + l->thread_cframe, &record);
    for (UInt steps = 0; frame && steps < MAX_STEPS; steps++) {
        if (!jm_read_word(frame + l->frame_code, &code) || !jm_read_uint(frame + l->frame_instruction, &instruction)) {
            counters.unreadable++;
            return;
        }
        // 3.10 counts code units of two bytes.
        add_frame((ChainFrame){
            .frame = frame, .code = code, .at = (Int)(l->lines == LINES_3_10 ? 2 * instruction : instruction)});
        end_group(record && record != state + l->root_cframe ? record : UNMARKED, 0);
        if (record)
            jm_read_word(record + l->cframe_previous, &record);
        jm_read_word(frame + l->frame_previous, &frame);
    }
}

// Start of the instructions that a frame runs: the code object's, or the thread's copy of them.
static Addr bytes_run_by(Addr frame, Addr code)
{
    const PythonLayout *l = &python.layout;
    UWord copies, copy, n;
    UInt i;
    if (l->frame_copy && jm_read_uint(frame + l->frame_copy, &i) && i && jm_read_word(code + l->code_copies, &copies) &&
        copies && jm_read_word(copies, &n) && i < n && jm_read_word(copies + (i + 1) * sizeof(Addr), &copy) && copy)
        return copy;
    return code + l->code_bytes;
}

// Returns the number of the last chain's frames that are unchanged, and not walked again.
static UInt walk_interpreter_frames(Addr state, LastChain *last)
{
    const PythonLayout *l = &python.layout;
    UWord frame, record = 0, base = 0;
    jm_read_word(state + l->thread_frame, &frame);
    if (l->thread_base)
        jm_read_word(state + l->thread_base, &base);
    if (l->chain != CHAIN_SHIM) {
        record = frame;
        jm_read_word(record + l->cframe_frame, &frame);
    }
    for (UInt steps = 0; frame && steps < MAX_STEPS; steps++) {
        const UInt n_kept = n_unchanged(last, frame, record);
        if (n_kept)
            return n_kept;
        if ((frame & 7) || !jm_is_readable(frame, python.frame_head)) {
            counters.unreadable++;
            break;
        }
        UChar owner = *(UChar *)(frame + l->frame_owner);
        UWord previous = *(UWord *)(frame + l->frame_previous);
        if (owner < l->first_shim_owner) {
            UWord code = *(UWord *)(frame + l->frame_code) & ~(UWord)3; // low bits are a tag since 3.14
            UWord instruction = *(UWord *)(frame + l->frame_instruction);
            const Bool is_entry = l->chain == CHAIN_CFRAME_ENTRY && *(UChar *)(frame + l->frame_is_entry);
            add_frame((ChainFrame){frame, code, previous, instruction, (Int)(instruction - bytes_run_by(frame, code)),
                                   is_entry});
            if (is_entry) {
                const Addr ended = record;
                jm_read_word(record + l->cframe_previous, &record);
                end_group(ended, record);
            }
        } else if (frame != base) {
            end_group(frame, previous);
        }
        frame = previous;
    }
    return 0;
}

Addr jm_python_innermost(ThreadId tid)
{
    const PythonLayout *l = &python.layout;
    Addr states[MAX_STATES_OF_ONE], all = 0;
    UInt n = python.is_known ? find_states(tid, states, MAX_STATES_OF_ONE) : 0;
    for (UInt i = 0; i < n; i++) {
        UWord frame;
        jm_read_word(states[i] + l->thread_frame, &frame);
        if (l->chain == CHAIN_CFRAME_ENTRY || l->chain == CHAIN_CFRAME_SHIM)
            jm_read_word(frame + l->cframe_frame, &frame);
        all = jm_hash(all + frame);
    }
    return all;
}

// Interpreters can nest on one C stack; inner activations are at lower addresses.
static void sort_groups(UInt first_new)
{
    for (UInt i = first_new; i < n_groups; i++) {
        Group moved = groups[i];
        UInt to = i;
        for (; to > 0 && groups[to - 1].marker > moved.marker; to--)
            groups[to] = groups[to - 1];
        groups[to] = moved;
    }
}

// As keep_chain.
static UInt walk_states(ThreadId tid, LastChain *last, Addr *changed)
{
    Addr states[MAX_STATES_OF_ONE];
    const UInt n = find_states(tid, states, MAX_STATES_OF_ONE);
    const ULong walk = n ? jm_python_code_begin() : 0;
    const Bool is_next = n && last->walk == walk - 1;
    UInt n_kept = 0;
    n_chain = n_grouped = n_groups = 0;
    last->n_sound = n == 1 && is_next && last->is_single && last->mappings == jm_n_forgotten ? last->n : 0;
    for (UInt i = 0; i < n; i++) {
        UInt first_new = n_groups;
        if (python.layout.chain == CHAIN_FRAME_OBJECTS)
            walk_frame_objects(states[i]);
        else
            n_kept = walk_interpreter_frames(states[i], last);
        if (n_grouped < n_chain && !n_kept)
            end_group(UNMATCHED, 0);
        if (first_new)
            sort_groups(first_new);
    }
    last->is_single = n == 1 && n_kept + n_chain < JM_MAX_FRAMES;
    last->walk = walk;
    last->mappings = jm_n_forgotten;
    return keep_chain(last, n_kept, is_next, changed);
}

// ---- the evaluator of releases without markers ---------------------------------------------------------------

// GCC moves rare code into a cold part, for which a stripped file has no symbol.
static Addr evaluator, evaluator_end, cold, cold_end;

static Addr end_of_code(Addr start)
{
    Addr end = start;
    while (start && jm_find_unwind_entry(end, UNWIND_FUNCTION) == start)
        end++;
    return end;
}

// Return the target of a jump at this address that can reach other sections; 0 if there is no such jump.
static Addr jump_target(Addr at)
{
#if defined(__x86_64__)
    const UChar *code = (const UChar *)at;
    const UInt n_opcode = code[0] == 0xe9 ? 1 : code[0] == 0x0f && code[1] >> 4 == 8 ? 2 : 0;
    return n_opcode ? at + n_opcode + 4 + *(const Int *)(code + n_opcode) : 0;
#else
    const UInt code = at & 3 ? 0 : *(const UInt *)at;
    return code >> 26 == 5 ? at + ((Int)(code << 6) >> 4) : 0;
#endif
}

// A jump to another function would leave the frame first.
static Bool is_jump_to_cold_part(Addr from)
{
    UnwindRow here, there;
    const Addr to = jump_target(from);
    return to && (to < evaluator || to >= evaluator_end) && jm_unwind_row(from, &here) && jm_unwind_row(to, &there) &&
           here.cfa_offset > (Long)sizeof(Addr) && here.cfa_offset == there.cfa_offset &&
           here.cfa_register == there.cfa_register;
}

static void find_evaluator(void)
{
    evaluator = jm_find_dynamic_symbol(python.inside, "_PyEval_EvalFrameDefault");
    evaluator_end = end_of_code(evaluator);
    for (Addr at = evaluator; at + 6 <= evaluator_end && !cold; at++)
        if (is_jump_to_cold_part(at))
            cold = jm_find_unwind_entry(jump_target(at), UNWIND_FUNCTION);
    cold_end = end_of_code(cold);
}

static Bool is_evaluator(Addr ip)
{
    return (ip >= evaluator && ip < evaluator_end) || (ip >= cold && ip < cold_end);
}

// ---- interleaving --------------------------------------------------------------------------------------------

static UInt put_group(const LastChain *last, const Group *group, Addr *keys, UInt n_keys, UInt max)
{
    for (UInt i = group->n; i-- && n_keys < max;) {
        const FrameId name = last->frames[group->first + i].name;
        if (name)
            keys[n_keys++] = JM_PYTHON_FRAME_KEY | name;
    }
    return n_keys;
}

// The number of groups to be placed. A late walk begins at a call that has run Python code since: skip that code's
// groups. Without markers, as many are left as the walk has activations.
static UInt n_to_place(const LastChain *last, const Addr *ips, const Addr *sps, UInt n, Bool is_late)
{
    const Group *g = last->groups;
    UInt left = last->n_groups, n_marked = 0;
    while (left && g[left - 1].marker > UNMARKED && g[left - 1].marker < sps[0])
        left--;
    if (!is_late || !left || g[left - 1].marker != UNMARKED)
        return left;
    for (UInt i = 0; i < n && n_marked < left; i++)
        n_marked += is_evaluator(ips[i]);
    return n_marked;
}

UInt jm_python_interleave(ThreadId tid, const Addr *ips, const Addr *sps, UInt n, Bool is_late, Addr *keys, UInt max,
                          UInt *n_same)
{
    if (!python.is_known)
        return 0;
    LastChain *last = JM_OF_THREAD(&last_chains, LastChain, tid);
    Addr changed;
    const UInt n_kept = walk_states(tid, last, &changed), n_same_native = last->is_placed ? *n_same : 0;
    if (last->n_groups && last->groups[last->n_groups - 1].marker == UNMARKED && !evaluator)
        find_evaluator();
    UInt n_keys = 0, left = n_to_place(last, ips, sps, n, is_late);
    *n_same = left || !last->is_native ? 0 : *n_same;
    last->is_native = !left;
    last->is_placed = left;
    if (!left)
        return 0;
    for (UInt i = 0; i < n && n_keys < max; i++) {
        if (left <= n_kept && n - i <= n_same_native && sps[i] > changed) {
            *n_same = n - i - left + (left ? last->groups[left - 1].n_outside : 0);
            return n_keys + *n_same;
        }
        const Addr marker = left ? last->groups[left - 1].marker : UNMATCHED;
        if (marker == UNMARKED ? is_evaluator(ips[i]) : sps[i] <= marker && marker < sps[i + 1])
            n_keys = put_group(last, &last->groups[--left], keys, n_keys, max);
        else
            keys[n_keys++] = ips[i];
    }
    // Frames are left over if the native stack broke before their activation. Append them rather than lose them.
    UInt n_inside = n_keys;
    while (left)
        n_keys = put_group(last, &last->groups[--left], keys, n_keys, max);
    if (n_keys > n_inside) {
        counters.not_interleaved++;
        last->is_placed = False;
    }
    return n_keys;
}

void jm_python_write_counters(void)
{
    jm_trace_nonzero("python-frame-unreadable", counters.unreadable + jm_python_code_unreadable());
    jm_trace_nonzero("python-frame-cut", counters.cut);
    jm_trace_nonzero("python-stack-not-interleaved", counters.not_interleaved);
}
