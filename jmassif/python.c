// SPDX-License-Identifier: GPL-2.0-or-later
//
// Walking an interpreter's frames; see python.h. The thread's state is found by the identity of the thread, not by who
// holds the GIL: a thread inside an operation that has released it keeps its frames, and a thread that Python does not
// know has none.
//
// Native and Python frames are interleaved by markers: every activation of the evaluation loop keeps a record on its own
// C stack (a _PyCFrame, from 3.12 on a shim frame), so the native frame whose stack holds the record *is* the activation.
// That needs no symbols, which matters: compilers move most of the loop into a nameless block.

#include "python.h"
#include "client_memory.h"
#include "options.h"
#include "python_layout.h"
#include "table.h"
#include "trace.h"

#include "pub_tool_guest.h"

#define MAX_PYTHON_FRAMES 4096
#define MAX_THREADS       4096 // states looked at before the search is given up
#define MAX_NAME          512
#define MAX_LINE_TABLE    (1u << 20)

typedef struct {
    Bool is_known;
    PythonLayout layout;
    Addr runtime;   // _PyRuntime
    Addr code_type; // PyCode_Type; 0: not known
    Addr text_start, text_end;
    Long self_delta; // pthread_self() less the thread register
    Bool has_delta;
} Interpreter;

static Interpreter python;

static struct {
    ULong unreadable;
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
    *minor = jm_find_dynamic_symbol(code, "Py_NewRef")             ? 10
             : jm_find_dynamic_symbol(code, "PyFrame_GetBack")     ? 9
             : jm_find_dynamic_symbol(code, "PyVectorcall_Call")   ? 8
             : jm_find_dynamic_symbol(code, "_PyRuntime")          ? 7
                                                                   : 6;
    return True;
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
        VG_(umsg)("jmassif: this build of Python %u.%u does not say how it is laid out: stacks are native only\n", major, minor);
        return;
    }
    python.runtime = runtime;
    python.code_type = jm_find_dynamic_symbol(code, "PyCode_Type");
    python.is_known = True;
}

Bool jm_python_is_active(void) { return python.is_known; }

// ---- the thread's state --------------------------------------------------------------------------------------

typedef struct {
    Addr state;
    Addr interpreter;
} KnownState;

static KnownState *known_states; // per thread

static Addr thread_register(ThreadId tid)
{
    Addr value = 0;
#if defined(VGA_amd64)
    VG_(get_shadow_regs_area)(tid, (UChar *)&value, 0, offsetof(VexGuestArchState, guest_FS_CONST), sizeof value);
#elif defined(VGA_arm64)
    VG_(get_shadow_regs_area)(tid, (UChar *)&value, 0, offsetof(VexGuestArchState, guest_TPIDR_EL0), sizeof value);
#endif
    return value;
}

// pthread_self(): on x86-64 the thread register itself; on AArch64 that less a constant of the C library, learnt from the
// main thread, whose identity the interpreter keeps (3.8 on), or else from the first state that it made.
static Addr thread_identity(ThreadId tid)
{
    Addr reg = thread_register(tid);
#if defined(VGA_arm64)
    if (!python.has_delta) {
        UWord main_thread = 0;
        if (tid != 1 || !python.layout.main_thread ||
            !jm_read_word(python.runtime + python.layout.main_thread, &main_thread) || !main_thread)
            return 0;
        python.self_delta = (Long)main_thread - (Long)reg;
        python.has_delta = True;
    }
#endif
    return reg + python.self_delta;
}

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

// Of several states with the identity the last in the list, which is the oldest: up to 3.11 a new thread's state bears its
// creator's identity until the thread runs.
static Addr find_state(Addr identity, Addr *interpreter)
{
    const PythonLayout *at = &python.layout;
    UInt n = 0;
    Addr found = 0;
    for (UWord interp = first_interpreter(); interp && n < MAX_THREADS; n++) {
        UWord state = 0;
        jm_read_word(interp + at->interpreter_threads, &state);
        for (; state && n < MAX_THREADS; n++) {
            UWord id, back;
            if (!jm_read_word(state + at->thread_id, &id) || !jm_read_word(state + at->thread_interpreter, &back) ||
                back != interp)
                break;
            if (id == identity) {
                found = state;
                *interpreter = interp;
            }
            if (!jm_read_word(state + at->thread_next, &state))
                break;
        }
        if (!jm_read_word(interp + at->interpreter_next, &interp))
            break;
    }
    return found;
}

static Addr state_of(ThreadId tid)
{
    if (!known_states)
        known_states = VG_(calloc)("jm.python", VG_N_THREADS, sizeof *known_states);
    KnownState *known = &known_states[tid];
    Addr identity = thread_identity(tid);
    UWord id, back;
    if (!identity)
        return 0;
    if (known->state && jm_read_word(known->state + python.layout.thread_id, &id) && id == identity &&
        jm_read_word(known->state + python.layout.thread_interpreter, &back) && back == known->interpreter)
        return known->state;
    known->state = find_state(identity, &known->interpreter);
    return known->state;
}

void jm_python_block_freed(Addr address)
{
    // A thread frees its own state, or the main thread those of the others when it finalises; either way the state's owner
    // is seldom another one, and its identity is checked at each use.
    ThreadId tid = VG_(get_running_tid)();
    if (known_states && known_states[tid].state == address)
        known_states[tid].state = 0;
}

void jm_python_thread_exit(ThreadId tid)
{
    if (known_states)
        known_states[tid].state = 0;
}

// ---- code objects to frames ----------------------------------------------------------------------------------

// What a code object and an instruction in it were found to be. A code object can be freed and another one take its place,
// so the fields that identify it are kept and compared.
typedef struct {
    Addr code;
    Int at;
    Int firstlineno;
    UWord filename, name, lines;
    FrameId frame;
} KnownCode;

static Table known_code = JM_TABLE("jm.python", KnownCode);
static Index known_code_index = JM_INDEX("jm.python");

static ULong code_hash(Addr code, Int at) { return jm_hash(code + ((ULong)(UInt)at << 40)); }

static ULong known_code_hash_of(UInt id)
{
    const KnownCode *k = jm_table_at(&known_code, id);
    return code_hash(k->code, k->at);
}

static UInt put_utf8(HChar *to, UInt c)
{
    if (c < 0x80) {
        to[0] = c;
        return 1;
    }
    if (c < 0x800) {
        to[0] = 0xc0 | c >> 6;
        to[1] = 0x80 | (c & 63);
        return 2;
    }
    if (c < 0x10000) {
        to[0] = 0xe0 | c >> 12;
        to[1] = 0x80 | (c >> 6 & 63);
        to[2] = 0x80 | (c & 63);
        return 3;
    }
    to[0] = 0xf0 | (c >> 18 & 7);
    to[1] = 0x80 | (c >> 12 & 63);
    to[2] = 0x80 | (c >> 6 & 63);
    to[3] = 0x80 | (c & 63);
    return 4;
}

// A str object as UTF-8, cut at the size of the buffer.
static Bool read_str(Addr object, HChar *to, UInt size)
{
    UWord length;
    UInt state;
    if (!jm_read_word(object + 16, &length) || !jm_read_uint(object + 32, &state) || length > 65536)
        return False;
    UInt width = state >> 2 & 7;
    Bool is_compact = state & 1 << 5, is_ascii = state & 1 << 6;
    if (!is_compact || (width != 1 && width != 2 && width != 4))
        return False;
    Addr data = object + (is_ascii ? python.layout.string_ascii : python.layout.string_compact);
    if (!jm_is_readable(data, length * width))
        return False;
    UInt n = 0;
    for (UWord i = 0; i < length && n + 5 < size; i++) {
        UInt c = width == 1   ? ((const UChar *)data)[i]
                 : width == 2 ? ((const UShort *)data)[i]
                              : ((const UInt *)data)[i];
        n += put_utf8(to + n, c);
    }
    to[n] = 0;
    return True;
}

static Bool is_code(Addr object)
{
    UWord type;
    return object && !(object & 7) && jm_read_word(object + 8, &type) && (!python.code_type || type == python.code_type);
}

static UInt line_at(const KnownCode *k)
{
    UWord n;
    if (!jm_read_word(k->lines + 16, &n) || n > MAX_LINE_TABLE || !jm_is_readable(k->lines + 32, n))
        return k->firstlineno;
    return jm_python_line(python.layout.lines, (const UChar *)k->lines + 32, n, k->firstlineno, k->at);
}

// The frame of the instruction at byte `at` of a code object; 0: not a Python function, or not to be read.
static FrameId frame_of(Addr code, Int at)
{
    const PythonLayout *l = &python.layout;
    UWord filename, name, plain_name, lines;
    UInt firstlineno;
    if (!jm_is_readable(code, l->code_bytes) || !is_code(code))
        return 0;
    // One check covers the whole head of the object.
    filename = *(UWord *)(code + l->code_filename);
    name = *(UWord *)(code + l->code_name);
    plain_name = *(UWord *)(code + l->code_plain_name);
    lines = *(UWord *)(code + l->code_lines);
    firstlineno = *(UInt *)(code + l->code_firstlineno);
    // What 3.13 on pushes to clean up after __init__ has one string for everything.
    if (filename == plain_name)
        return 0;

    jm_index_reserve(&known_code_index, known_code_hash_of);
    UInt slot = (UInt)code_hash(code, at) & known_code_index.mask;
    while (known_code_index.slots[slot]) {
        const KnownCode *k = jm_table_at(&known_code, known_code_index.slots[slot]);
        if (k->code == code && k->at == at && k->filename == filename && k->name == name && k->lines == lines &&
            k->firstlineno == (Int)firstlineno)
            return k->frame;
        slot = (slot + 1) & known_code_index.mask;
    }
    UInt id = jm_table_add(&known_code);
    KnownCode *k = jm_table_at(&known_code, id);
    k->code = code;
    k->at = at;
    k->firstlineno = firstlineno;
    k->filename = filename;
    k->name = name;
    k->lines = lines;
    HChar file_text[MAX_NAME], name_text[MAX_NAME];
    if (read_str(filename, file_text, sizeof file_text) && read_str(name, name_text, sizeof name_text))
        k->frame = jm_symbol_python_frame(name_text, file_text, line_at(k));
    else
        counters.unreadable++;
    known_code_index.slots[slot] = id;
    known_code_index.used++;
    return k->frame;
}

// ---- the chain of frames -------------------------------------------------------------------------------------

// The Python frames of one activation of the evaluation loop, innermost first.
typedef struct {
    Addr marker; // on the activation's C stack; 0: there is none (3.6-3.9)
    UInt end;    // its frames are those before this one, back to the end of the group before
} Group;

static FrameId chain[MAX_PYTHON_FRAMES];
static Group groups[MAX_PYTHON_FRAMES];
static UInt n_chain, n_groups;

static void end_group(Addr marker)
{
    if (n_groups < MAX_PYTHON_FRAMES) {
        groups[n_groups].marker = marker;
        groups[n_groups++].end = n_chain;
    }
}

static void add_frame(Addr code, Int at)
{
    FrameId frame = frame_of(code, at);
    if (frame)
        chain[n_chain++] = frame;
}

static void walk_frame_objects(Addr state)
{
    const PythonLayout *l = &python.layout;
    UWord frame, record = 0;
    jm_read_word(state + l->thread_frame, &frame);
    if (l->thread_cframe)
        jm_read_word(state + l->thread_cframe, &record);
    while (frame && n_chain < MAX_PYTHON_FRAMES) {
        UWord code;
        UInt instruction;
        if (!jm_read_word(frame + l->frame_code, &code) || !jm_read_uint(frame + l->frame_instruction, &instruction))
            return;
        // 3.10 counts code units of two bytes.
        add_frame(code, l->lines == LINES_3_10 ? 2 * (Int)instruction : (Int)instruction);
        end_group(record && record != state + l->root_cframe ? record : 0);
        if (record && !jm_read_word(record + l->cframe_previous, &record))
            return;
        if (!jm_read_word(frame + l->frame_previous, &frame))
            return;
    }
}

static void walk_interpreter_frames(Addr state)
{
    const PythonLayout *l = &python.layout;
    UWord frame, record = 0;
    if (!jm_read_word(state + l->thread_frame, &frame))
        return;
    if (l->chain == CHAIN_CFRAME_ENTRY || l->chain == CHAIN_CFRAME_SHIM) {
        record = frame;
        if (!jm_read_word(record + l->cframe_frame, &frame))
            return;
    }
    while (frame && n_chain < MAX_PYTHON_FRAMES && n_groups < MAX_PYTHON_FRAMES) {
        UWord code, instruction;
        UChar owner;
        // The fixed part of a frame ends behind its owner.
        if ((frame & 7) || !jm_is_readable(frame, l->frame_owner + 1)) {
            counters.unreadable++;
            return;
        }
        owner = *(UChar *)(frame + l->frame_owner);
        if (owner >= l->first_shim_owner) {
            end_group(frame);
        } else {
            code = *(UWord *)(frame + l->frame_code) & ~(UWord)3; // 3.14 on keeps a tag in the low bits
            instruction = *(UWord *)(frame + l->frame_instruction);
            add_frame(code, (Int)(instruction - (code + l->code_bytes)));
            if (l->chain == CHAIN_CFRAME_ENTRY && *(UChar *)(frame + l->frame_is_entry)) {
                end_group(record);
                if (!jm_read_word(record + l->cframe_previous, &record))
                    return;
            }
        }
        frame = *(UWord *)(frame + l->frame_previous);
    }
}

// ---- interleaving --------------------------------------------------------------------------------------------

static Bool is_evaluator(Addr ip)
{
    // 3.6-3.9 have no markers. The name is in every build's dynamic symbols there.
    return jm_symbol_locate(ip)->is_evaluator;
}

UInt jm_python_interleave(ThreadId tid, const Addr *ips, const Addr *sps, UInt n, Addr *keys, UInt max)
{
    n_chain = n_groups = 0;
    Addr state = python.is_known ? state_of(tid) : 0;
    if (state) {
        if (python.layout.chain == CHAIN_FRAME_OBJECTS)
            walk_frame_objects(state);
        else
            walk_interpreter_frames(state);
    }
    UInt n_keys = 0, group = 0, from = 0;
    for (UInt i = 0; i < n && n_keys < max; i++) {
        Bool is_activation = False;
        if (group < n_groups) {
            Addr marker = groups[group].marker;
            if (marker)
                is_activation = sps[i] <= marker && (i + 1 == n || marker < sps[i + 1]);
            else
                is_activation = is_evaluator(ips[i]);
        }
        if (!is_activation) {
            keys[n_keys++] = ips[i];
            continue;
        }
        for (; from < groups[group].end && n_keys < max; from++)
            keys[n_keys++] = JM_PYTHON_FRAME_KEY | chain[from];
        group++;
    }
    // Frames whose activation was not found: the native stack broke before it. Better at its outer end than lost.
    if (from < n_chain) {
        counters.not_interleaved++;
        for (; from < n_chain && n_keys < max; from++)
            keys[n_keys++] = JM_PYTHON_FRAME_KEY | chain[from];
    }
    return n_keys;
}

void jm_python_write_counters(void)
{
    if (counters.unreadable)
        jm_trace_counter("python-frame-unreadable", counters.unreadable);
    if (counters.not_interleaved)
        jm_trace_counter("python-stack-not-interleaved", counters.not_interleaved);
}
