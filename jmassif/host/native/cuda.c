// SPDX-License-Identifier: GPL-2.0-or-later
//
// A call through a stub (stubs.h): one piece of assembly calls the real function with the arguments as they came, and C
// before and after it. So a structure passed by value needs no code of its own, and another real function costs a word
// of data instead of a copy of a wrapper.

#include "base/libc.h"
#include "host/native/cuda_functions.h"
#include "host/native/loaded.h"
#include "host/native/loader.h"
#include "host/native/requests.h"
#include "host/native/stubs.h"

#include "preload/protocol.h"

// ---- a call --------------------------------------------------------------------------------------------------

#define N_REGISTER_ARGUMENTS 8 // of arm64; x86-64 has six

// In the frame of jm_native_call, which knows the offsets.
typedef struct {
    const UWord *slot;
    UWord argument[N_REGISTER_ARGUMENTS]; // from registers
    const UWord *stack;                   // the arguments that follow
    UWord result;
    Addr real;
    NativeRegisters registers;
    UWord row;
    UWord words[JM_MAX_WORDS];
} NativeCall;

#define AT_ARGUMENT  8
#define AT_STACK     72
#define AT_RESULT    80
#define AT_REAL      88
#define AT_REGISTERS 96
#if defined(__x86_64__)
#define CALL_BYTES 352
#else
#define CALL_BYTES 480
#endif
_Static_assert(offsetof(NativeCall, argument) == AT_ARGUMENT && offsetof(NativeCall, stack) == AT_STACK &&
                   offsetof(NativeCall, result) == AT_RESULT && offsetof(NativeCall, real) == AT_REAL &&
                   offsetof(NativeCall, registers) == AT_REGISTERS && sizeof(NativeCall) <= CALL_BYTES,
               "the assembly's offsets");

UWord jm_native_call_begins(NativeCall *call) __attribute__((visibility("hidden"), used));
void jm_native_call_ends(NativeCall *call) __attribute__((visibility("hidden"), used));

#define TEXT_OF(x) #x
#define AS_TEXT(x) TEXT_OF(x)

// clang-format off
#if defined(__x86_64__)
__asm__(
    ".text\n"
    ".balign 64\n"
    ".hidden jm_native_call\n"
    ".globl jm_native_call\n"
    ".type jm_native_call, @function\n"
    "jm_native_call:\n"
    ".cfi_startproc\n"
    "    pushq %rbp\n"
    "    .cfi_def_cfa_offset 16\n"
    "    .cfi_offset %rbp, -16\n"
    "    movq %rsp, %rbp\n"
    "    .cfi_def_cfa_register %rbp\n"
    "    subq $" AS_TEXT(CALL_BYTES) ", %rsp\n"
    "    movq %r11, (%rsp)\n"
    "    movq %rdi, " AS_TEXT(AT_ARGUMENT) "(%rsp)\n"
    "    movq %rsi, " AS_TEXT(AT_ARGUMENT) "+8(%rsp)\n"
    "    movq %rdx, " AS_TEXT(AT_ARGUMENT) "+16(%rsp)\n"
    "    movq %rcx, " AS_TEXT(AT_ARGUMENT) "+24(%rsp)\n"
    "    movq %r8, " AS_TEXT(AT_ARGUMENT) "+32(%rsp)\n"
    "    movq %r9, " AS_TEXT(AT_ARGUMENT) "+40(%rsp)\n"
    "    leaq 16(%rbp), %rax\n"
    "    movq %rax, " AS_TEXT(AT_STACK) "(%rsp)\n"
    "    movq %rbx, " AS_TEXT(AT_REGISTERS) "+3*8(%rsp)\n"
    "    movq (%rbp), %rax\n" // registers as they were in the stub
    "    movq %rax, " AS_TEXT(AT_REGISTERS) "+6*8(%rsp)\n"
    "    leaq 8(%rbp), %rax\n"
    "    movq %rax, " AS_TEXT(AT_REGISTERS) "+7*8(%rsp)\n"
    "    movq %r12, " AS_TEXT(AT_REGISTERS) "+12*8(%rsp)\n"
    "    movq %r13, " AS_TEXT(AT_REGISTERS) "+13*8(%rsp)\n"
    "    movq %r14, " AS_TEXT(AT_REGISTERS) "+14*8(%rsp)\n"
    "    movq %r15, " AS_TEXT(AT_REGISTERS) "+15*8(%rsp)\n"
    "    movq %rsp, %rdi\n"
    "    call jm_native_call_begins\n"
    "    movq %rsp, %r11\n"
    "    testq %rax, %rax\n" // words on the stack
    "    jz 1f\n"
    "    leaq 0(,%rax,8), %rcx\n"
    "    subq %rcx, %rsp\n"
    "    andq $-16, %rsp\n"
    "    movq " AS_TEXT(AT_STACK) "(%r11), %rsi\n"
    "    movq %rsp, %rdi\n"
    "    movq %rax, %rcx\n"
    "    rep movsq\n"
    "1:\n"
    "    movq " AS_TEXT(AT_ARGUMENT) "(%r11), %rdi\n"
    "    movq " AS_TEXT(AT_ARGUMENT) "+8(%r11), %rsi\n"
    "    movq " AS_TEXT(AT_ARGUMENT) "+16(%r11), %rdx\n"
    "    movq " AS_TEXT(AT_ARGUMENT) "+24(%r11), %rcx\n"
    "    movq " AS_TEXT(AT_ARGUMENT) "+32(%r11), %r8\n"
    "    movq " AS_TEXT(AT_ARGUMENT) "+40(%r11), %r9\n"
    "    call *" AS_TEXT(AT_REAL) "(%r11)\n"
    "    leaq -" AS_TEXT(CALL_BYTES) "(%rbp), %rsp\n"
    "    movq %rax, " AS_TEXT(AT_RESULT) "(%rsp)\n"
    "    movq %rsp, %rdi\n"
    "    call jm_native_call_ends\n"
    "    movq " AS_TEXT(AT_RESULT) "(%rsp), %rax\n"
    "    leave\n"
    "    .cfi_def_cfa %rsp, 8\n"
    "    ret\n"
    ".cfi_endproc\n"
    ".size jm_native_call, .-jm_native_call\n");
#elif defined(__aarch64__)
__asm__(
    ".text\n"
    ".balign 64\n"
    ".hidden jm_native_call\n"
    ".globl jm_native_call\n"
    ".type jm_native_call, %function\n"
    "jm_native_call:\n"
    ".cfi_startproc\n"
    "    stp x29, x30, [sp, #-16]!\n"
    "    .cfi_def_cfa_offset 16\n"
    "    .cfi_offset x29, -16\n"
    "    .cfi_offset x30, -8\n"
    "    mov x29, sp\n"
    "    .cfi_def_cfa_register x29\n"
    "    sub sp, sp, #" AS_TEXT(CALL_BYTES) "\n"
    "    str x16, [sp]\n"
    "    stp x0, x1, [sp, #" AS_TEXT(AT_ARGUMENT) "]\n"
    "    stp x2, x3, [sp, #" AS_TEXT(AT_ARGUMENT) "+16]\n"
    "    stp x4, x5, [sp, #" AS_TEXT(AT_ARGUMENT) "+32]\n"
    "    stp x6, x7, [sp, #" AS_TEXT(AT_ARGUMENT) "+48]\n"
    "    add x9, x29, #16\n"
    "    str x9, [sp, #" AS_TEXT(AT_STACK) "]\n"
    "    add x10, sp, #" AS_TEXT(AT_REGISTERS) "\n"
    "    str x8, [x10, #8*8]\n"
    "    str x18, [x10, #18*8]\n"
    "    stp x19, x20, [x10, #19*8]\n"
    "    stp x21, x22, [x10, #21*8]\n"
    "    stp x23, x24, [x10, #23*8]\n"
    "    stp x25, x26, [x10, #25*8]\n"
    "    stp x27, x28, [x10, #27*8]\n"
    "    ldr x12, [x29]\n" // registers as they were in the stub
    "    stp x12, x30, [x10, #29*8]\n"
    "    str x9, [x10, #31*8]\n"
    "    mov x0, sp\n"
    "    bl jm_native_call_begins\n"
    "    mov x16, sp\n"
    "    cbz x0, 2f\n" // words on the stack
    "    ldr x9, [x16, #" AS_TEXT(AT_STACK) "]\n"
    "    add x10, x0, #1\n"
    "    and x10, x10, #-2\n"
    "    sub sp, sp, x10, lsl #3\n"
    "    mov x10, sp\n"
    "1:  ldr x11, [x9], #8\n"
    "    str x11, [x10], #8\n"
    "    subs x0, x0, #1\n"
    "    b.ne 1b\n"
    "2:\n"
    "    ldp x0, x1, [x16, #" AS_TEXT(AT_ARGUMENT) "]\n"
    "    ldp x2, x3, [x16, #" AS_TEXT(AT_ARGUMENT) "+16]\n"
    "    ldp x4, x5, [x16, #" AS_TEXT(AT_ARGUMENT) "+32]\n"
    "    ldp x6, x7, [x16, #" AS_TEXT(AT_ARGUMENT) "+48]\n"
    "    ldr x8, [x16, #" AS_TEXT(AT_REGISTERS) "+8*8]\n"
    "    ldr x16, [x16, #" AS_TEXT(AT_REAL) "]\n"
    "    blr x16\n"
    "    sub sp, x29, #" AS_TEXT(CALL_BYTES) "\n"
    "    str x0, [sp, #" AS_TEXT(AT_RESULT) "]\n"
    "    mov x0, sp\n"
    "    bl jm_native_call_ends\n"
    "    ldr x0, [sp, #" AS_TEXT(AT_RESULT) "]\n"
    "    mov sp, x29\n"
    "    ldp x29, x30, [sp], #16\n"
    "    .cfi_def_cfa sp, 0\n"
    "    ret\n"
    ".cfi_endproc\n"
    ".size jm_native_call, .-jm_native_call\n");
#else
#error "calls are written for x86-64 and arm64"
#endif
// clang-format on

// ---- words ---------------------------------------------------------------------------------------------------

// The arguments in order, a structure by value spread into its words. On x86-64 a structure of more than 16 bytes lies
// on the stack, past the register arguments (System V ABI, 3.2.3); on arm64 a pointer to it is passed (AAPCS64, 6.8.2).
// Returns the number of words on the stack.
static UWord read_words(NativeCall *call, const NativeFunction *function)
{
    const UWord *a = call->argument, *by_value = call->stack;
    UWord *w = memset(call->words, 0, sizeof call->words);
    UInt at =
        function->convention == EXTENT_AT_2 || function->convention == ID128_AT_2 ? 2 : 1; // the structure's place
#if defined(__x86_64__)
    static const UChar words_on_stack[] = {
        [EXTENT_AT_1] = 3, [EXTENT_AT_2] = 3, [HANDLE64_AT_1] = 8, [ID128_AT_2] = 16, [PITCHED_AT_0] = 7};
    const UWord *pitched = by_value, *extent = by_value + 4;
    const UInt in_registers = 6, behind = at;
#else
    static const UChar words_on_stack[PITCHED_AT_0 + 1];
    const UWord *pitched = (const UWord *)a[0], *extent = (const UWord *)a[2];
    const UInt in_registers = 8, behind = at + 1;
    if (function->convention != WORDS)
        by_value = (const UWord *)a[at];
#endif
    switch (function->convention) {
    case WORDS:
        for (UInt i = 0; i < function->n_words; i++)
            w[i] = i < in_registers ? a[i] : call->stack[i - in_registers];
        return function->n_words > in_registers ? function->n_words - in_registers : 0;
    case EXTENT_AT_1:
    case EXTENT_AT_2:
        memcpy(w, a, at * sizeof *w);
        memcpy(w + at, by_value, 3 * sizeof *w);
        memcpy(w + at + 3, a + behind, 2 * sizeof *w);
        break;
    case HANDLE64_AT_1:
        w[0] = a[0], w[1] = by_value[0], w[2] = a[behind];
        break;
    case ID128_AT_2:
        memcpy(w, a, 2 * sizeof *w);
        memcpy(w + 2, a + behind, 2 * sizeof *w);
        break;
    case PITCHED_AT_0:
        w[0] = pitched[0], w[1] = pitched[1], w[2] = pitched[3];
        memcpy(w + 3, extent, 3 * sizeof *w);
        break;
    }
    return words_on_stack[function->convention];
}

// ---- functions that answer with the address of another ---------------------------------------------------------

// The row of the driver's exported function at the address, whose name is the one asked for and what follows it: the
// driver may have been asked for an older form.
typedef struct {
    const HChar *asked_for;
    Addr address;
    Int row;
} Exported;

static Bool find_exported(NativeObject *object, void *context)
{
    Exported *e = context;
    if (e->address < object->start || e->address >= object->end)
        return False;
    SizeT length = strlen(e->asked_for);
    for (Int i = 0; i < NATIVE_N_ROWS && e->row < 0; i++)
        if (jm_native_is_drivers(i) && strncmp(jm_native_functions[i].name, e->asked_for, length) == 0 &&
            jm_native_exported(object, jm_native_functions[i].name) == e->address)
            e->row = i;
    return True;
}

static Bool is_wrapped_in_some_form(const HChar *asked_for)
{
    SizeT length = strlen(asked_for);
    for (Int i = 0; i < NATIVE_N_ROWS; i++)
        if (jm_native_is_drivers(i) && strncmp(jm_native_functions[i].name, asked_for, length) == 0 &&
            (!jm_native_functions[i].name[length] || jm_native_functions[i].name[length] == '_'))
            return True;
    return False;
}

// A program that asks for an older release gets forms without the suffix, of which those with sizes are not recorded.
#define FIRST_WITH_V2 3020

static Int row_of_answer(NativeCall *call, Addr symbol, Addr found, UWord version, UWord flags)
{
    const HChar *asked_for = (const HChar *)symbol;
    if (!is_wrapped_in_some_form(asked_for))
        return -1;
    Exported exported = {asked_for, found, -1};
    jm_native_each_object(find_exported, &exported);
    if (exported.row >= 0)
        return exported.row;
    if (version && version < FIRST_WITH_V2)
        return jm_native_row(asked_for);
    return (Int)jm_native_request(&call->registers, JM_REQ_TWIN, symbol, found, flags, 0, 0) - 1;
}

// The program gets a stub of exactly the function with which it was answered.
static void cover_answer(NativeCall *call)
{
    const UWord *words = call->words;
    Addr *place = (Addr *)words[1];
    UWord version = 0, flags = words[2];
    if (call->row != ROW_ENTRY_POINT)
        version = words[2], flags = words[3];
    if ((UInt)call->result != 0 || !words[0] || !place || !*place || jm_native_is_stub(*place))
        return;
    Int row = row_of_answer(call, words[0], *place, version, flags);
    if (row >= 0)
        *place = jm_native_stub(row, *place);
}

static Bool is_answering(UWord row)
{
    return row == JM_ROW_cuGetProcAddress || row == JM_ROW_cuGetProcAddress_v2 || row >= JM_N_ROWS;
}

// ---- before and after ----------------------------------------------------------------------------------------

UWord jm_native_call_begins(NativeCall *call)
{
    jm_native_patch_if_due();
    StubTarget target = jm_native_stub_begins(call->slot);
    call->registers.word[NATIVE_IP] = target.stub; // which has the function's name
    call->row = target.row;
    call->real = target.real;
    UWord n_on_stack = read_words(call, &jm_native_functions[call->row]);
    if (call->row < JM_N_ROWS)
        jm_native_request(&call->registers, JM_REQ_ENTER, call->row, (UWord)call->words, 0, 0, 0);
    return n_on_stack;
}

void jm_native_call_ends(NativeCall *call)
{
    Addr real = jm_native_stub_ends(call->slot).real;
    if (is_answering(call->row))
        cover_answer(call);
    if (call->row < JM_N_ROWS)
        jm_native_leave(&call->registers, call->row, call->result, call->words, real);
}
