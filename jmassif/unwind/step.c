// SPDX-License-Identifier: GPL-2.0-or-later
//
// Some frames need more than a rule: other registers, a signal's context, or a guess. One function per method takes the
// step or returns NO_FRAME; the most reliable method goes first, see step.h. Tables are exact. Guesses must be
// plausible: a return address follows a call instruction, and the caller's frame lies further out.

#include "unwind/step.h"
#include "base/client_memory.h"
#include "base/libc.h"
#include "host/host.h"
#include "unwind/table.h"

#include <asm/siginfo.h>
#include <asm/signal.h>
#include <asm/sigcontext.h>
#include <asm/ucontext.h>

// ---- code ----------------------------------------------------------------------------------------------------

// Unwinding through code without tables looks up some ten addresses a stack. Only mappings are cached, until they
// change; instructions are read each time, so code that the program rewrites is seen at once.

// Direct-mapped cache from mebibytes to mappings, as in client_memory.h. It holds mappings without code too.
#define N_CODE_SEGMENTS 256
typedef struct {
    Addr start, end;
    Bool is_code; // executable, the core's own mappings included: signal handlers may return there
    Bool can_be_read;
} CodeSegment;

static CodeSegment code_segments[N_CODE_SEGMENTS];

void jm_code_forget(void)
{
    memset(code_segments, 0, sizeof code_segments);
}

static const CodeSegment *find_code_segment(Addr address)
{
    static const CodeSegment nothing;
    Mapping mapping;
    // A word that is no address, such as text: do not make the host ask the kernel.
    if (address >= JM_ADDRESS_SPACE || (!host_mapping_at(address, &mapping) && mapping.start == mapping.end))
        return &nothing;
    CodeSegment *known = &code_segments[address >> 20 & (N_CODE_SEGMENTS - 1)];
    *known = (CodeSegment){.start = mapping.start,
                           .end = mapping.end,
                           .is_code = mapping.is_executable,
                           .can_be_read = mapping.is_executable && mapping.is_readable};
    return known;
}

// The mapping of the address, with code or without; empty, never NULL, if the address is unmapped.
static inline const CodeSegment *code_segment(Addr address)
{
    const CodeSegment *known = &code_segments[address >> 20 & (N_CODE_SEGMENTS - 1)];
    if (LIKELY(known->start <= address && address < known->end))
        return known;
    return find_code_segment(address);
}

static inline Bool is_code_at(Addr address)
{
    return code_segment(address)->is_code;
}

// is_return_address: the instruction before the address is a call. is_trampoline: the code there calls sigreturn at
// once. The kernel's trampoline is not mapped under Valgrind, and others may lack an unwind table.

#if defined(__x86_64__)

static Bool is_return_address(Addr address)
{
    // call rel32; indirect call (ff /2), with zero to five bytes after its second byte.
    const CodeSegment *s = code_segment(address - 1);
    if (!s->can_be_read || (address == s->end && !is_code_at(address)))
        return False;
    const UChar *end = (const UChar *)address;
    const UWord n = address - s->start;
    if (n >= 5 && end[-5] == 0xe8)
        return True;
    for (UInt length = 2; length <= 7 && length <= n; length++)
        if (end[-(Int)length] == 0xff && (end[1 - (Int)length] & 0x38) == 0x10)
            return True;
    return False;
}

static Bool is_trampoline(Addr address)
{
    static const UChar move_64[] = {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05}; // mov $15, %rax; syscall
    static const UChar move_32[] = {0xb8, 15, 0, 0, 0, 0x0f, 0x05};             // mov $15, %eax; syscall
    const CodeSegment *s = code_segment(address);
    const UChar *code = (const UChar *)address;
    if (!s->can_be_read)
        return False;
    const UWord n = s->end - address;
    return (n >= sizeof move_64 && memcmp(code, move_64, sizeof move_64) == 0) ||
           (n >= sizeof move_32 && memcmp(code, move_32, sizeof move_32) == 0);
}

#else

static Bool is_return_address(Addr address)
{
    // bl; blr and its variants that authenticate the pointer.
    const CodeSegment *s = code_segment(address - 4);
    if (address & 3 || !s->can_be_read || (address == s->end && !is_code_at(address)))
        return False;
    UInt instruction = *(const UInt *)(address - 4);
    return instruction >> 26 == 0x25 || (instruction & 0xfefff000) == 0xd63f0000;
}

static Bool is_trampoline(Addr address)
{
    static const UInt instructions[] = {0xd2801168, 0xd4000001}; // mov x8, #139; svc #0
    const CodeSegment *s = code_segment(address);
    return s->can_be_read && s->end - address >= sizeof instructions &&
           memcmp((const void *)address, instructions, sizeof instructions) == 0;
}

#endif

// ---- leaving a frame -----------------------------------------------------------------------------------------

static inline Addr sp_of(const Cursor *c)
{
    return c->registers.value[JM_REG_SP];
}

static Bool is_end(Addr return_address)
{
    return return_address <= 1;
}

// True if the caller's frame can begin at `sp`.
static Bool is_further_out(const Cursor *c, Addr sp)
{
    Addr old = sp_of(c);
    if (sp == old)
        return !c->is_call;                                         // nothing pushed yet
    return sp > old || jm_readable_end(sp) != jm_readable_end(old); // or the thread switched stacks
}

static Step leave_by_call(Cursor *c, const Registers *registers, Addr return_address)
{
    if (is_end(return_address))
        return AT_OUTERMOST;
    c->registers = *registers;
    c->ip = return_address - 1;
    c->is_call = True;
    c->is_innermost = False;
    return AT_CALLER;
}

static Step leave_by_signal(Cursor *c, const Registers *registers, Addr interrupted_at)
{
    c->registers = *registers;
    c->ip = interrupted_at;
    c->is_call = False;
    c->is_innermost = False;
    return AT_CALLER;
}

// ---- exact: unwind tables, signal frames ---------------------------------------------------------------------

static Evaluation evaluate(Addr expression, const Registers *registers, const Addr *first, Addr *value)
{
    // jm_unwind_row has checked that the entry is readable and contains the whole expression.
    DwarfReader r = {expression, ~(Addr)0, False};
    ULong bytes = jm_dwarf_take_uleb(&r);
    r.end = r.at + bytes;
    return jm_dwarf_evaluate(r, registers, first, value);
}

static Evaluation find_cfa(const UnwindRow *row, const Registers *from, Addr *cfa)
{
    if (row->cfa_expression)
        return evaluate(row->cfa_expression, from, NULL, cfa);
    if (row->cfa_register >= JM_N_REGISTERS)
        return EVALUATION_FAILED;
    if (!jm_register_is_known(from, row->cfa_register))
        return EVALUATION_LACKS_REGISTER;
    *cfa = from->value[row->cfa_register] + row->cfa_offset;
    return EVALUATED;
}

static Evaluation find_register(const UnwindRow *row, UInt i, const Registers *from, Addr cfa, Addr *value)
{
    Addr at;
    Evaluation found;
    switch (row->where[i]) {
    case KEPT:
    case IN_REGISTER: {
        ULong other = row->where[i] == KEPT ? i : (ULong)row->value[i];
        if (!jm_register_is_known(from, other))
            return other < JM_N_REGISTERS ? EVALUATION_LACKS_REGISTER : EVALUATION_FAILED;
        *value = from->value[other];
        return EVALUATED;
    }
    case AT_CFA:
        return jm_read_word(cfa + row->value[i], value) ? EVALUATED : EVALUATION_FAILED;
    case IS_CFA:
        *value = cfa + row->value[i];
        return EVALUATED;
    case AT_EXPRESSION:
        found = evaluate(row->value[i], from, &cfa, &at);
        return found != EVALUATED ? found : jm_read_word(at, value) ? EVALUATED : EVALUATION_FAILED;
    case IS_EXPRESSION:
        return evaluate(row->value[i], from, &cfa, value);
    default:
        return EVALUATION_FAILED;
    }
}

// NO_FRAME if there is no table. If the stack contradicts it, the stack is corrupt: end instead of guessing from its
// contents.
static Step by_table(Cursor *c)
{
    UnwindRow row;
    if (!jm_unwind_row(c->ip, &row))
        return NO_FRAME;
    if (row.where[row.return_address] == UNDEFINED)
        return AT_OUTERMOST;
    Registers from = c->registers;
#if defined(__x86_64__)
    jm_register_set(&from, JM_REG_RA, c->ip + c->is_call);
#endif
    Addr cfa, return_address = 0;
    Evaluation found = find_cfa(&row, &from, &cfa);
    if (found == EVALUATED)
        found = find_register(&row, row.return_address, &from, cfa, &return_address);
    if (found == EVALUATION_LACKS_REGISTER && c->is_partial)
        return LACKS_REGISTER;
    if (found != EVALUATED)
        return AT_OUTERMOST;
    Registers to = {.known = 0};
    for (UInt i = 0; i < JM_N_REGISTERS; i++) {
        Addr value = cfa;
        if ((i == JM_REG_SP && row.where[i] == KEPT) || find_register(&row, i, &from, cfa, &value) == EVALUATED)
            jm_register_set(&to, i, value);
    }
    if (!jm_register_is_known(&to, JM_REG_SP))
        return AT_OUTERMOST;
    if (row.is_signal_frame)
        return leave_by_signal(c, &to, return_address);
    return is_further_out(c, to.value[JM_REG_SP]) ? leave_by_call(c, &to, return_address) : AT_OUTERMOST;
}

static Step by_signal(Cursor *c)
{
    if (!is_trampoline(c->ip + c->is_call))
        return NO_FRAME;
    Registers to = {.known = 0};
#if defined(__x86_64__)
    struct ucontext context;
    if (!jm_read_bytes(sp_of(c), &context, offsetof(struct ucontext, uc_mcontext) + sizeof context.uc_mcontext))
        return NO_FRAME;
    const struct sigcontext *at = &context.uc_mcontext;
    const Addr values[JM_REG_RA] = {at->rax, at->rdx, at->rcx, at->rbx, at->rsi, at->rdi, at->rbp, at->rsp,
                                    at->r8,  at->r9,  at->r10, at->r11, at->r12, at->r13, at->r14, at->r15};
    for (UInt i = 0; i < JM_REG_RA; i++)
        jm_register_set(&to, i, values[i]);
    return leave_by_signal(c, &to, at->rip);
#else
    static struct ucontext context; // static: vector registers make it large
    if (!jm_read_bytes(sp_of(c) + sizeof(siginfo_t), &context,
                       offsetof(struct ucontext, uc_mcontext) + offsetof(struct sigcontext, __reserved)))
        return NO_FRAME;
    const struct sigcontext *at = &context.uc_mcontext;
    for (UInt i = 0; i < JM_REG_SP; i++)
        jm_register_set(&to, i, at->regs[i]);
    jm_register_set(&to, JM_REG_SP, at->sp);
    return leave_by_signal(c, &to, at->pc);
#endif
}

static Step by_core(Cursor *c)
{
    const Registers *from = &c->registers;
    HostFrameRegisters frame = {.ip = c->ip, .sp = sp_of(c), .fp = from->value[JM_REG_FP]};
    Addr end = jm_readable_end(frame.sp);
    if (!host_may_step(c->ip) || !end || !jm_register_is_known(from, JM_REG_FP))
        return NO_FRAME;
#if defined(__aarch64__)
    frame.link = jm_register_is_known(from, JM_REG_RA) ? from->value[JM_REG_RA] : 0;
#endif
    if (!host_step(&frame, end) || !is_further_out(c, frame.sp))
        return NO_FRAME;
    Registers to = {.known = 0};
    jm_register_set(&to, JM_REG_SP, frame.sp);
    jm_register_set(&to, JM_REG_FP, frame.fp);
#if defined(__aarch64__)
    jm_register_set(&to, JM_REG_RA, frame.link);
#endif
    return leave_by_call(c, &to, frame.ip);
}

// ---- guesses -------------------------------------------------------------------------------------------------

// Bytes of the stack scanned for a return address; the frames of most functions are smaller.
#define MAX_SCANNED 4096

static Step leave_by_guess(Cursor *c, Addr sp, Addr fp, Addr return_address)
{
    Registers to = {.known = 0};
    jm_register_set(&to, JM_REG_SP, sp);
    jm_register_set(&to, JM_REG_FP, fp);
    return leave_by_call(c, &to, return_address);
}

// Start of the caller's frame, at `sp` or above.
static Addr callers_sp(Addr sp, Addr fp, Addr return_address)
{
#if defined(__aarch64__)
    // On arm64 the return address may be saved anywhere in the callee's frame, so its place does not give the caller's
    // SP. But the caller's FP points to the caller's own saved pair, and its table has that pair's distance from SP.
    UnwindRow row;
    if (jm_unwind_row(return_address - 1, &row) && row.cfa_register == JM_REG_SP && !row.cfa_expression &&
        row.where[JM_REG_FP] == AT_CFA && row.where[JM_REG_RA] == AT_CFA &&
        row.value[JM_REG_RA] == row.value[JM_REG_FP] + (Long)sizeof(Addr)) {
        Addr found = fp - row.value[JM_REG_FP] - row.cfa_offset;
        if (found > sp && found < jm_readable_end(sp))
            return found;
    }
#endif
    return sp;
}

// The frame pointer points to the caller's, with the return address beside it.
static Step by_frame_pointer(Cursor *c)
{
    Addr fp = c->registers.value[JM_REG_FP];
    Addr callers_fp, return_address;
    if (!jm_register_is_known(&c->registers, JM_REG_FP) || fp < sp_of(c) || fp >= jm_readable_end(sp_of(c)) ||
        !jm_read_word(fp, &callers_fp) || !jm_read_word(fp + sizeof(Addr), &return_address))
        return NO_FRAME;
    if (is_end(return_address))
        return AT_OUTERMOST;
    if (!is_return_address(return_address))
        return NO_FRAME;
    c->saved_at = fp;
    return leave_by_guess(c, callers_sp(fp + 2 * sizeof(Addr), callers_fp, return_address), callers_fp, return_address);
}

static Step by_scan(Cursor *c)
{
    Addr sp = sp_of(c), end = jm_readable_end(sp);
    Addr fp = c->registers.value[JM_REG_FP];
    for (Addr at = sp; at + sizeof(Addr) <= end && at - sp < MAX_SCANNED; at += sizeof(Addr)) {
        const Addr *word = (const Addr *)at;
        if (!is_return_address(*word))
            continue;
        if (at > sp && word[-1] > at && word[-1] < end) // the caller's frame pointer, saved next to it
            fp = word[-1];
        c->scanned = True;
        return leave_by_guess(c, callers_sp(at + sizeof(Addr), fp, *word), fp, *word);
    }
    return NO_FRAME;
}

// After a call to an address without code, or (arm64) at a function's first instructions: the call's return address is
// still on top of the stack or in the link register.
static Step by_last_call(Cursor *c)
{
    Addr sp = sp_of(c), fp = c->registers.value[JM_REG_FP], return_address;
#if defined(__x86_64__)
    if (is_code_at(c->ip) || !jm_read_word(sp, &return_address))
        return NO_FRAME;
    sp += sizeof(Addr);
#else
    if (!jm_register_is_known(&c->registers, JM_REG_RA))
        return NO_FRAME;
    return_address = c->registers.value[JM_REG_RA];
#endif
    return is_return_address(return_address) ? leave_by_guess(c, sp, fp, return_address) : NO_FRAME;
}

// ---- all methods ---------------------------------------------------------------------------------------------

Step jm_unwind_step(Cursor *c)
{
    c->saved_at = 0;
    Step step = c->has_no_table ? NO_FRAME : by_table(c);
    if (step == NO_FRAME)
        step = by_signal(c);
    if (step == NO_FRAME && !c->has_no_table)
        step = by_core(c);
    if (step != NO_FRAME)
        return step;
    // No call precedes the return address: it was written by hand, as on a coroutine's new stack.
    if (c->is_call && !is_return_address(c->ip + 1))
        return is_code_at(c->ip) ? AT_OUTERMOST : NO_FRAME;
    step = c->is_call ? NO_FRAME : by_last_call(c);
    if (step == NO_FRAME && !is_code_at(c->ip))
        return c->is_innermost ? AT_OUTERMOST : NO_FRAME;
    if (step == NO_FRAME)
        step = by_frame_pointer(c);
    if (step == NO_FRAME)
        step = by_scan(c);
    return step == NO_FRAME ? AT_OUTERMOST : step;
}
