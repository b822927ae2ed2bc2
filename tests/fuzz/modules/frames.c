// SPDX-License-Identifier: GPL-2.0-or-later
//
// The memory of an interpreter of any release, of which any word may be wrong: its frames are walked. The input says
// which release, and which words; all else is as it should be.

#include "base/options.h"
#include "shim.h"
#include "python/layout.c" // for what 3.13 and later publish, and where
#include "symbols/symbol.h"
#include "unwind/unwind.h"

// The module has one interpreter for a run; each input has its own.
#include "python/python.c"

Options jm_options = {.python = True};

enum {
    BYTES = 1 << 18,
    N_FRAMES = 12,
    FRAME = 0x3e000,
    CODE = 0x28000,
    TEXTS = 0x2c000,
    INTERPRETER = 0x8000,
    STATE = 0x18000
};

static unsigned char *memory;
// Two functions of 64 bytes; the first jumps into the second.
static const unsigned char evaluator_code[128] = {[8] = 0x0f, [9] = 0x84, [10] = 66};

Addr jm_find_dynamic_symbol(Addr inside, const HChar *name)
{
    return !strcmp(name, "_PyRuntime") ? (Addr)memory : strstr(name, "EvalFrame") ? (Addr)evaluator_code : 0;
}
Addr jm_find_unwind_entry(Addr ip, UnwindAddress which)
{
    return ip - (ip - (Addr)evaluator_code) % 64;
}
Bool jm_unwind_row(Addr ip, UnwindRow *row)
{
    *row = (UnwindRow){.cfa_offset = 64};
    return True;
}
FrameId jm_symbol_python_frame(const HChar *function, const HChar *file, UInt line)
{
    return 1 + (strlen(function) + strlen(file) + line) % 1000;
}
void jm_trace_nonzero(const HChar *key, ULong count) {}
void jm_trace_record(Record record, const HChar *fields, const ULong *values) {}
UInt host_n_threads(void)
{
    return 2;
}
Addr host_thread_pointer(ThreadId tid)
{
    return 0x7777;
}

static void word(size_t at, UWord value)
{
    if (at + sizeof value <= BYTES)
        memcpy(memory + at, &value, sizeof value);
}

static void text(size_t at, const PythonLayout *l, const HChar *s)
{
    word(at + 16, strlen(s));
    word(at + 32, 1 << 2 | 1 << 5 | 1 << 6);
    memcpy(memory + at + l->string_ascii, s, strlen(s));
}

// A state, its frames, a code object for each, and on the C stack what marks them.
static void build(const PythonLayout *l)
{
    Addr base = (Addr)memory;
    word(l->interpreters_head, base + INTERPRETER);
    if (l->version == 0x306)
        word(0, base + STATE);
    word(INTERPRETER + l->interpreter_threads, base + STATE);
    word(STATE + l->thread_interpreter, base + INTERPRETER);
    word(STATE + l->thread_id, 0x7777);
    word(STATE + l->thread_frame, base + FRAME);
    for (UInt i = 0; i < N_FRAMES; i++) {
        size_t frame = FRAME + i * 512, code = CODE + i * 512, texts = TEXTS + i * 512;
        if (l->thread_cframe || l->chain == CHAIN_CFRAME_ENTRY || l->chain == CHAIN_CFRAME_SHIM) {
            word(STATE + 2048 + i * 64 + l->cframe_frame, base + frame);
            word(STATE + 2048 + i * 64 + l->cframe_previous, base + STATE + 2048 + (i + 1) * 64);
        }
        word(frame + l->frame_previous, i + 1 < N_FRAMES ? base + frame + 512 : 0);
        word(frame + l->frame_code, base + code);
        word(frame + l->frame_instruction, l->frame_owner ? base + code + l->code_bytes + 4 : 4);
        if (l->frame_owner)
            memory[frame + l->frame_owner] = i % 3 == 2 ? l->first_shim_owner : 0;
        word(code + l->code_firstlineno, 10 + i);
        word(code + l->code_filename, base + texts);
        word(code + l->code_name, base + texts + 128);
        word(code + l->code_lines, base + texts + 256);
        text(texts, l, i & 1 ? "<string>" : "module.py");
        text(texts + 128, l, "function");
        word(texts + 256 + 16, 24);
    }
    if (l->thread_cframe || l->chain == CHAIN_CFRAME_ENTRY || l->chain == CHAIN_CFRAME_SHIM)
        word(STATE + (l->thread_cframe ? l->thread_cframe : l->thread_frame), base + STATE + 2048);
}

static const UShort *offsets(const PythonLayout *l)
{
    return (const UShort *)((const UChar *)l + offsetof(PythonLayout, interpreters_head));
}

enum { N_OFFSETS = (sizeof(PythonLayout) - offsetof(PythonLayout, interpreters_head)) / sizeof(UShort) };

static const PythonLayout *published_by(UShort version)
{
    for (UInt i = 0; i < sizeof debug_positions / sizeof debug_positions[0]; i++)
        if (debug_positions[i].version == version)
            return &debug_positions[i];
    return NULL;
}

static void publish(const PythonLayout *l)
{
    const PythonLayout *at = published_by(l->version);
    if (!at)
        return;
    memcpy(memory, "xdebugpy", 8);
    word(8, (UWord)l->version << 16);
    for (UInt i = 0; i < N_OFFSETS; i++)
        if (offsets(at)[i])
            word(offsets(at)[i], offsets(l)[i]);
}

// Where something stands: what the interpreter publishes, or a field of what is in that region.
static size_t telling_place(const PythonLayout *l, UInt region, UChar which)
{
    static const UShort starts[] = {0, INTERPRETER >> 4, STATE >> 4, FRAME >> 4, CODE >> 4, TEXTS >> 4};
    size_t start = ((size_t)starts[region] << 4) + (region > 2 ? which % 3 * 512 : 0);
    const UShort fields[6][8] = {
        {l->interpreters_head},
        {l->interpreter_threads, l->interpreter_next},
        {l->thread_frame, l->thread_cframe, l->thread_next, l->thread_id, l->thread_interpreter, l->thread_base},
        {l->frame_code, l->frame_previous, l->frame_instruction, l->frame_owner, l->frame_is_entry},
        {8, l->code_filename, l->code_name, l->code_lines, l->code_firstlineno, l->code_bytes},
        {16, 32, 128 + 16, 128 + 32, 256 + 16, 48, 128 + 48, 256 + 32},
    };
    if (region == 0 && published_by(l->version)) {
        UShort at[N_OFFSETS], n = 0;
        for (UInt i = 0; i < N_OFFSETS; i++)
            if (offsets(published_by(l->version))[i])
                at[n++] = offsets(published_by(l->version))[i];
        return at[which % n];
    }
    return start + fields[region][which / 3 % 8];
}

// Four bytes each: where, and what kind of wrong.
static void damage(const PythonLayout *l, const uint8_t *bytes, size_t n)
{
    for (size_t i = 1; i + 4 <= n; i += 4) {
        UWord value;
        size_t at = telling_place(l, bytes[i] % 6, bytes[i + 1]) + (bytes[i] < 200 ? 0 : 8 * (bytes[i] % 32));
        switch (bytes[i + 2] % 6) {
        case 0:
            value = (Addr)memory + bytes[i + 3] * 1021u % BYTES;
            break;
        case 1:
            value = (Addr)memory + BYTES - bytes[i + 3];
            break;
        case 2:
            value = bytes[i + 3];
            break;
        case 3:
            value = bytes[i + 3] * 257u;
            break;
        case 4:
            value = ~(UWord)bytes[i + 3];
            break;
        default:
            value = (Addr)memory + FRAME + bytes[i + 3] % 16 * 512;
        }
        word(at, value);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static uint8_t nothing[BYTES];
    static Addr keys[JM_MAX_FRAMES];
    if (n < 1 || n > 400)
        return 0;
    const PythonLayout *l = jm_python_layout(3, 6 + bytes[0] % 10);
    shim_seed(bytes, n);
    memory = shim_segment(nothing, sizeof nothing, 0);
    jm_forget_readable();
    PythonLayout of_release = *l;
    publish(&of_release);
    if (of_release.version >= 0x30d)
        jm_python_apply_debug_offsets(&of_release, (Addr)memory);
    build(&of_release);
    publish(&of_release);
    damage(&of_release, bytes, n);
    memset(&python, 0, sizeof python);
    release(1, JM_OF_THREAD(&last_chains, LastChain, 1), 0);
    jm_per_thread_forget(&last_chains);
    python.layout = *l;
    python.runtime = (Addr)memory;
    if (l->version < 0x30d || jm_python_apply_debug_offsets(&python.layout, (Addr)memory)) {
        measure_frame_head();
        jm_python_code_start(&python.layout, 0);
        python.is_known = True;
        Addr ips[40], sps[41];
        for (UInt i = 0; i < 41; i++)
            sps[i] = (Addr)memory + FRAME + i * 256;
        for (UInt i = 0; i < 40; i++)
            ips[i] = (Addr)evaluator_code + i * 5;
        for (UInt i = 0; i < 3; i++) { // the last two times with what is known of the one before
            UInt n_same = i ? bytes[n - 1] % 41 : 0;
            jm_python_interleave(1, ips, sps, 40, bytes[0] / 10 % 2, keys, JM_MAX_FRAMES, &n_same);
            damage(&of_release, bytes, i ? 0 : n / 2);
        }
    }
    shim_forget();
    return 0;
}
