// SPDX-License-Identifier: GPL-2.0-or-later
//
// Walking an interpreter's frames; see python.h. The thread's state is found by the identity of the thread, not by who
// holds the GIL: a thread inside an operation that has released it keeps its frames, and a thread that Python does not
// know has none.
//
// Native and Python frames are interleaved by markers: every activation of the evaluation loop keeps a record on its
// own C stack (a _PyCFrame, from 3.12 on a shim frame), so the native frame whose stack holds the record *is* the
// activation. That needs no symbols, which matters: compilers move most of the loop into a nameless block.

#include "stack/python.h"
#include "base/client_memory.h"
#include "base/elf.h"
#include "base/options.h"
#include "stack/python_identity.h"
#include "stack/python_layout.h"
#include "stack/python_text.h"
#include "base/stats.h"
#include "base/table.h"
#include "stack/unwind.h"
#include "trace/trace.h"

#define MAX_STEPS         100000 // along a chain of frames before it is taken for a circle
#define MAX_STATES        4096   // looked at before the search is given up
#define MAX_STATES_OF_ONE 8
#define MAX_NAME          4096 // PATH_MAX
#define MAX_LINE_TABLE    (1u << 20)

typedef struct {
    Bool is_known;
    PythonLayout layout;
    Addr runtime;     // _PyRuntime
    Addr inside;      // its object file
    Addr code_type;   // PyCode_Type; 0: not known
    SizeT code_head;  // bytes of a code object that hold all that is read of it
    SizeT frame_head; // likewise of an interpreter's frame
} Interpreter;

static Interpreter python;

static struct {
    ULong unreadable;
    ULong cut;
    ULong not_interleaved;
} counters;

// ---- finding the interpreter ---------------------------------------------------------------------------------

// From symbols that came with a release (3.6 to 3.10 have no Py_Version).
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

static SizeT end_of(const UShort *fields, UInt n)
{
    SizeT end = 0;
    for (UInt i = 0; i < n; i++)
        if (end < fields[i] + sizeof(Addr))
            end = fields[i] + sizeof(Addr);
    return end;
}

// A release may have its fields in any order, and one that publishes where they are may say anything.
static void measure_heads(void)
{
    const PythonLayout *l = &python.layout;
    const UShort of_code[] = {l->code_firstlineno, l->code_filename, l->code_name, l->code_lines, l->code_bytes};
    const UShort of_frame[] = {l->frame_code, l->frame_previous, l->frame_instruction};
    python.code_head = end_of(of_code, sizeof of_code / sizeof of_code[0]);
    python.frame_head = end_of(of_frame, sizeof of_frame / sizeof of_frame[0]);
    // These are bytes, the last of a structure that may end with them.
    if (python.frame_head <= l->frame_owner)
        python.frame_head = l->frame_owner + 1;
    if (python.frame_head <= l->frame_is_entry)
        python.frame_head = l->frame_is_entry + 1;
}

void jm_python_object(const HChar *path, Addr code)
{
    UInt major, minor;
    // The first object is the program itself, which may have an interpreter inside whatever its name.
    static Bool is_later;
    Bool is_candidate = !is_later || VG_(strstr)(VG_(basename)(path), "python");
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
        VG_(umsg)("jmassif: Python %u.%u is not known: stacks are native only\n", major, minor);
        return;
    }
    python.layout = *layout;
    if (layout->version >= 0x30d && !jm_python_apply_debug_offsets(&python.layout, runtime)) {
        VG_(umsg)
        ("jmassif: this build of Python %u.%u does not say how it is laid out: stacks are native only\n", major, minor);
        return;
    }
    python.runtime = runtime;
    python.inside = code;
    python.code_type = jm_find_dynamic_symbol(code, "PyCode_Type");
    measure_heads();
    python.is_known = True;
}

// ---- the thread's states -------------------------------------------------------------------------------------

static Addr first_interpreter(void)
{
    UWord head = 0;
    if (python.layout.version == 0x306) {
        // Only the current thread's state has a name here; its interpreter is the first one.
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

// All states of a thread, newest first: it has one in every interpreter that it has entered. They are looked for each
// time. That takes two reads a state, and a state remembered could have been freed, or its thread be another one now.
static UInt find_states(ThreadId tid, Addr *states, UInt max)
{
    const PythonLayout *at = &python.layout;
    Addr reg = jm_python_thread_register(tid);
    UInt n = 0, steps = 0;
    UWord interp = first_interpreter(), state;
    while (interp && steps++ < MAX_STATES && jm_read_word(interp + at->interpreter_threads, &state)) {
        while (state && steps++ < MAX_STATES) {
            UWord id, owner;
            if (!jm_read_word(state + at->thread_id, &id) || !jm_read_word(state + at->thread_interpreter, &owner) ||
                owner != interp)
                break;
            if (jm_python_is_identity(id, reg) && n < max)
                states[n++] = state;
            if (!jm_read_word(state + at->thread_next, &state))
                break;
        }
        if (!jm_read_word(interp + at->interpreter_next, &interp))
            break;
    }
    return n;
}

// ---- code objects to frames ----------------------------------------------------------------------------------

// What a code object and an instruction in it were found to be. A code object can be freed and another one take its
// place, and generated code (exec in a loop) also puts its names and lines where those of the code before it were. So
// what makes an object another one is kept and compared, as far as that is cheap.
typedef struct {
    Addr code;
    Int at;
    FrameId frame; // 0: none is shown
    ULong mark;
} KnownCode;

static Table known_code = JM_TABLE("jm.python", KnownCode);
static Index known_code_index = JM_INDEX("jm.python");

static ULong code_hash(Addr code, Int at)
{
    return jm_hash(code + ((ULong)(UInt)at << 40));
}

static ULong known_code_hash_of(UInt id)
{
    const KnownCode *k = jm_table_at(&known_code, id);
    return code_hash(k->code, k->at);
}

#define BYTES_LENGTH 16
#define BYTES_DATA   32

// What makes an object's contents other ones: its place, the two words before its end and, if `whole`, all from `start`
// on. What is short reaches into the object's header, which does no harm. Sums of products by odd numbers that differ
// (multilinear hashing; Lemire and Kaser 2014): unlike steps of a better hash, no multiplication waits for another.
static inline ULong content_mark(Addr start, Addr end, Bool whole)
{
    const ULong *words = (const ULong *)end;
    ULong mark = end * 0x9e3779b97f4a7c15ULL + words[-1] * 0xbf58476d1ce4e5b9ULL + words[-2] * 0x94d049bb133111ebULL;
    for (Addr at = start; whole && at + sizeof(ULong) <= end; at += sizeof(ULong))
        mark = jm_hash(mark ^ *(const ULong *)at);
    return mark;
}

static Bool is_frozen(const Str *file)
{
    static const HChar frozen[] = "<frozen ";
    return file->width == 1 && file->length >= sizeof frozen - 1 &&
           VG_(memcmp)((const void *)file->data, frozen, sizeof frozen - 1) == 0;
}

static Bool is_code(Addr object)
{
    UWord type;
    return !(object & 7) && jm_read_word(object + 8, &type) && (!python.code_type || type == python.code_type);
}

// What a code object says of itself, and where.
typedef struct {
    Addr filename, function, lines; // objects
    Int first_line;
    Str file, name;
    UWord n_lines;
} CodeHead;

static inline ULong code_mark(const CodeHead *h, Bool is_generated)
{
    ULong mark = content_mark(h->file.data, h->file.data + h->file.length * h->file.width, False);
    mark = 3 * mark + content_mark(h->name.data, h->name.data + h->name.length * h->name.width, False);
    mark = 3 * mark + content_mark(h->lines + BYTES_DATA, h->lines + BYTES_DATA + h->n_lines, is_generated);
    return 3 * mark + (UInt)h->first_line;
}

// Those met lately, each at the one place that its hash gives it: to see that one is still what it was takes a third of
// the steps of finding out, and once a stack is enough: imports have the same few frames over and over. Generated code
// is not among them.
typedef struct {
    Addr code;
    Int at;
    FrameId frame;
    ULong walk; // in which it was looked at last
} RecentCode;

// What it is compared by, in the same place.
typedef struct {
    ULong mark;
    CodeHead head;
} RecentHead;

#define RECENT_BITS 9
static RecentCode recent_code[1u << RECENT_BITS];
static RecentHead recent_heads[1u << RECENT_BITS];
static ULong this_walk; // of one stack's frames: meanwhile the program stands still

static inline UInt recent_place(Addr code, Int at)
{
    return jm_place(code + ((ULong)(UInt)at << 20), RECENT_BITS);
}

static inline Bool is_length(Addr object, UWord length_at, UWord length, Addr end)
{
    return jm_is_readable(object, end - object) && *(const UWord *)(object + length_at) == length;
}

// The code object that is now where this one was; its own head can be read.
static inline Bool is_still(const RecentHead *r, Addr code)
{
    const PythonLayout *l = &python.layout;
    const CodeHead *h = &r->head;
    if (*(Addr *)(code + l->code_filename) != h->filename || *(Addr *)(code + l->code_name) != h->function ||
        *(Addr *)(code + l->code_lines) != h->lines || *(Int *)(code + l->code_firstlineno) != h->first_line)
        return False;
    Addr file_end = h->file.data + h->file.length * h->file.width;
    Addr name_end = h->name.data + h->name.length * h->name.width;
    Addr lines_end = h->lines + BYTES_DATA + h->n_lines;
    return is_length(h->filename, JM_STR_LENGTH, h->file.length, file_end) &&
           is_length(h->function, JM_STR_LENGTH, h->name.length, name_end) &&
           is_length(h->lines, BYTES_LENGTH, h->n_lines, lines_end) && code_mark(h, False) == r->mark;
}

static FrameId find_frame(Addr code, Int at, const CodeHead *h, ULong mark)
{
    jm_index_reserve(&known_code_index, known_code_hash_of);
    UInt slot = (UInt)code_hash(code, at) & known_code_index.mask;
    KnownCode *k = NULL;
    while (known_code_index.slots[slot]) {
        KnownCode *other = jm_table_at(&known_code, known_code_index.slots[slot]);
        if (other->code == code && other->at == at) {
            if (other->mark == mark)
                return other->frame;
            k = other; // no longer
            break;
        }
        slot = (slot + 1) & known_code_index.mask;
    }
    if (!k) {
        UInt id = jm_table_add(&known_code);
        k = jm_table_at(&known_code, id);
        known_code_index.slots[slot] = id;
        known_code_index.used++;
    }
    static HChar file_text[MAX_NAME], name_text[MAX_NAME];
    jm_python_copy_str(&h->file, file_text, sizeof file_text);
    jm_python_copy_str(&h->name, name_text, sizeof name_text);
    k->code = code;
    k->at = at;
    k->mark = mark;
    // From 3.13 on a call of a class runs a frame that cleans up after __init__. It has no line; one string is all its
    // names.
    Bool is_cleanup = h->file.data == h->name.data && h->first_line == 0;
    UInt line =
        jm_python_line(python.layout.lines, (const UChar *)h->lines + BYTES_DATA, h->n_lines, h->first_line, at);
    k->frame = is_cleanup ? 0 : jm_symbol_python_frame(name_text, file_text, line);
    return k->frame;
}

// The frame of the instruction at byte `at` of a code object; 0: not a Python function, or not to be read. `place`:
// where it is if it was met lately.
static FrameId look_at(Addr code, Int at, UInt place)
{
    const PythonLayout *l = &python.layout;
    RecentCode *recent = &recent_code[place];
    if (!jm_is_readable(code, python.code_head) || !is_code(code)) {
        counters.unreadable++;
        return 0;
    }
    // That check covers the head of the object.
    if (recent->code == code && recent->at == at && is_still(&recent_heads[place], code)) {
        recent->walk = this_walk;
        return recent->frame;
    }
    CodeHead h = {.filename = *(Addr *)(code + l->code_filename),
                  .function = *(Addr *)(code + l->code_name),
                  .lines = *(Addr *)(code + l->code_lines),
                  .first_line = *(Int *)(code + l->code_firstlineno)};
    if (!jm_python_find_str(l, h.filename, &h.file) || !jm_python_find_str(l, h.function, &h.name) ||
        !jm_read_word(h.lines + BYTES_LENGTH, &h.n_lines) || h.n_lines > MAX_LINE_TABLE ||
        !jm_is_readable(h.lines, BYTES_DATA + h.n_lines)) {
        counters.unreadable++;
        return 0;
    }
    // Code from a file stays what it is, and so do the interpreter's own frozen modules, whose long tables an import
    // would read again and again. That of exec is <string> or <something that counts up at the end>.
    Bool is_generated = h.file.length && *(const UChar *)h.file.data == '<' && !is_frozen(&h.file);
    ULong mark = code_mark(&h, is_generated);
    FrameId frame = find_frame(code, at, &h, mark);
    if (!is_generated) {
        *recent = (RecentCode){code, at, frame, this_walk};
        recent_heads[place] = (RecentHead){mark, h};
    }
    return frame;
}

static inline FrameId frame_of(Addr code, Int at)
{
    const UInt place = recent_place(code, at);
    const RecentCode *recent = &recent_code[place];
    if (recent->walk == this_walk && recent->code == code && recent->at == at)
        return recent->frame;
    return look_at(code, at, place);
}

// ---- the chain of frames -------------------------------------------------------------------------------------

// The Python frames of one activation of the evaluation loop, innermost first.
typedef struct {
    Addr marker; // on the activation's C stack
    UInt first;
    UInt n;
} Group;

#define UNMARKED  0          // 3.6-3.9: known by the evaluator's name only
#define UNMATCHED (~(Addr)0) // the chain broke before its marker came

static FrameId chain[JM_MAX_FRAMES];
static Group groups[JM_MAX_FRAMES];
static UInt n_chain, n_grouped, n_groups;

static void end_group(Addr marker)
{
    if (n_groups == JM_MAX_FRAMES)
        return;
    groups[n_groups++] = (Group){marker, n_grouped, n_chain - n_grouped};
    n_grouped = n_chain;
}

static void add_frame(Addr code, Int at)
{
    if (n_chain == JM_MAX_FRAMES) {
        counters.cut++;
        return;
    }
    FrameId frame = frame_of(code, at);
    if (frame)
        chain[n_chain++] = frame;
}

// Both walks end early where memory cannot be read.

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
        add_frame(code, (Int)(l->lines == LINES_3_10 ? 2 * instruction : instruction));
        end_group(record && record != state + l->root_cframe ? record : UNMARKED);
        if (record)
            jm_read_word(record + l->cframe_previous, &record);
        jm_read_word(frame + l->frame_previous, &frame);
    }
}

static void walk_interpreter_frames(Addr state)
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
        if ((frame & 7) || !jm_is_readable(frame, python.frame_head)) {
            counters.unreadable++;
            break;
        }
        UChar owner = *(UChar *)(frame + l->frame_owner);
        UWord previous = *(UWord *)(frame + l->frame_previous);
        if (owner < l->first_shim_owner) {
            UWord code = *(UWord *)(frame + l->frame_code) & ~(UWord)3; // 3.14 on keeps a tag in the low bits
            UWord instruction = *(UWord *)(frame + l->frame_instruction);
            add_frame(code, (Int)(instruction - (code + l->code_bytes)));
            if (l->chain == CHAIN_CFRAME_ENTRY && *(UChar *)(frame + l->frame_is_entry)) {
                end_group(record);
                jm_read_word(record + l->cframe_previous, &record);
            }
        } else if (frame != base) {
            end_group(frame);
        }
        frame = previous;
    }
}

// An interpreter may run inside another one on the same C stack, whose inner end is at lower addresses.
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

static void walk_states(ThreadId tid)
{
    Addr states[MAX_STATES_OF_ONE];
    UInt n = find_states(tid, states, MAX_STATES_OF_ONE);
    n_chain = n_grouped = n_groups = 0;
    this_walk++;
    for (UInt i = 0; i < n; i++) {
        UInt first_new = n_groups;
        if (python.layout.chain == CHAIN_FRAME_OBJECTS)
            walk_frame_objects(states[i]);
        else
            walk_interpreter_frames(states[i]);
        if (n_grouped < n_chain)
            end_group(UNMATCHED);
        if (first_new)
            sort_groups(first_new);
    }
}

// ---- interleaving --------------------------------------------------------------------------------------------

static Bool is_activation(const Group *group, Addr ip, Addr sp, Addr outer_sp)
{
    if (group->marker == UNMARKED)
        return jm_symbol_locate(ip)->is_evaluator; // its name is among the dynamic symbols of these releases
    return sp <= group->marker && group->marker < outer_sp;
}

static UInt put_group(const Group *group, Addr *keys, UInt n_keys, UInt max)
{
    for (UInt i = 0; i < group->n && n_keys < max; i++)
        keys[n_keys++] = JM_PYTHON_FRAME_KEY | chain[group->first + i];
    return n_keys;
}

UInt jm_python_interleave(ThreadId tid, const Addr *ips, const Addr *sps, UInt n, Addr *keys, UInt max)
{
    if (!python.is_known)
        return 0;
    UInt n_keys = 0, next = 0;
    walk_states(tid);
    if (n_groups == 0)
        return 0;
    for (UInt i = 0; i < n && n_keys < max; i++) {
        if (next < n_groups && is_activation(&groups[next], ips[i], sps[i], sps[i + 1]))
            n_keys = put_group(&groups[next++], keys, n_keys, max);
        else
            keys[n_keys++] = ips[i];
    }
    // Frames whose activation was not found: the native stack broke before it. Better at its outer end than lost.
    UInt n_inside = n_keys;
    for (; next < n_groups; next++)
        n_keys = put_group(&groups[next], keys, n_keys, max);
    if (n_keys > n_inside)
        counters.not_interleaved++;
    return n_keys;
}

void jm_python_write_counters(void)
{
    if (counters.unreadable)
        jm_trace_counter("python-frame-unreadable", counters.unreadable);
    if (counters.cut)
        jm_trace_counter("python-frame-cut", counters.cut);
    if (counters.not_interleaved)
        jm_trace_counter("python-stack-not-interleaved", counters.not_interleaved);
}

void jm_python_stats(void)
{
    jm_stats_table("places in Python code", &known_code);
    jm_stats_index(&known_code_index);
    jm_stats_row("static", "places in Python code met lately", 1u << RECENT_BITS,
                 sizeof recent_code + sizeof recent_heads);
    jm_stats_row("static", "Python frames of one stack, at most", JM_MAX_FRAMES, sizeof chain + sizeof groups);
}
