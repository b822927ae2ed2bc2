// SPDX-License-Identifier: GPL-2.0-or-later
//
// Functions whose unwind tables say what compilers seldom say: frames that other registers than the stack and the frame
// pointer know, or an expression; a return address that is kept in a register.

#include <stdlib.h>
#include <string.h>

void allocate(int bytes)
{
    free(malloc(bytes));
    __asm__ volatile("");
}

#define FUNCTION(name, body)                                                                                           \
    void name(void);                                                                                                   \
    __asm__(".text\n .globl " #name "\n .type " #name ", %function\n" #name ": .cfi_startproc\n" body                  \
            "ret\n .cfi_endproc\n .size " #name ", . - " #name "\n")

#if defined(__x86_64__)
FUNCTION(by_register, "push %rbx\n .cfi_def_cfa_offset 16\n .cfi_offset rbx, -16\n mov %rsp, %rbx\n"
                      ".cfi_def_cfa_register rbx\n sub $400, %rsp\n and $-64, %rsp\n mov $100, %edi\n call allocate\n"
                      "mov %rbx, %rsp\n .cfi_def_cfa_register rsp\n pop %rbx\n .cfi_def_cfa_offset 8\n");
// The return address on the stack is overwritten for the time.
FUNCTION(in_register, "push %r12\n .cfi_def_cfa_offset 16\n .cfi_offset r12, -16\n mov 8(%rsp), %r12\n"
                      ".cfi_register rip, r12\n movq $0, 8(%rsp)\n sub $8, %rsp\n .cfi_def_cfa_offset 24\n"
                      "mov $200, %edi\n call allocate\n add $8, %rsp\n .cfi_def_cfa_offset 16\n mov %r12, 8(%rsp)\n"
                      ".cfi_offset rip, -8\n pop %r12\n .cfi_def_cfa_offset 8\n");
// What the slot at rsp + 64 holds.
FUNCTION(by_expression, "lea 8(%rsp), %rax\n sub $120, %rsp\n .cfi_def_cfa_offset 128\n mov %rax, 64(%rsp)\n"
                        ".cfi_escape 0x0f, 4, 0x77, 0xc0, 0x00, 0x06\n mov $300, %edi\n call allocate\n"
                        "add $120, %rsp\n .cfi_def_cfa rsp, 8\n");
// As tables say it of the procedure linkage table: the CFA depends on the instruction.
FUNCTION(by_arithmetic,
         "sub $8, %rsp\n .cfi_escape 0x0f, 11, 0x77, 16, 0x80, 0, 0x3f, 0x1a, 0x40, 0x2a, 0x33, 0x24, 0x22\n"
         "mov $500, %edi\n call allocate\n add $8, %rsp\n .cfi_def_cfa rsp, 8\n");
// What by_register's like needs is where an expression says, or what one says.
FUNCTION(keeping, "push %rbx\n .cfi_def_cfa_offset 16\n .cfi_escape 0x10, 3, 2, 0x40, 0x1c\n xor %ebx, %ebx\n"
                  "mov $600, %edi\n call allocate\n pop %rbx\n .cfi_def_cfa_offset 8\n .cfi_restore rbx\n");
FUNCTION(inverting, "mov %rbx, %rax\n not %rax\n push %rax\n .cfi_def_cfa_offset 16\n"
                    ".cfi_escape 0x16, 3, 4, 0x40, 0x1c, 0x06, 0x20\n xor %ebx, %ebx\n mov $700, %edi\n call allocate\n"
                    "pop %rbx\n .cfi_def_cfa_offset 8\n not %rbx\n .cfi_restore rbx\n");
FUNCTION(needing, "push %rbx\n .cfi_def_cfa_offset 16\n .cfi_offset rbx, -16\n mov %rsp, %rbx\n"
                  ".cfi_def_cfa_register rbx\n sub $400, %rsp\n and $-64, %rsp\n call keeping\n call inverting\n"
                  "mov %rbx, %rsp\n .cfi_def_cfa_register rsp\n pop %rbx\n .cfi_def_cfa_offset 8\n");
#else
FUNCTION(by_register,
         "stp x29, x30, [sp, #-32]!\n .cfi_def_cfa_offset 32\n .cfi_offset x29, -32\n .cfi_offset x30, -24\n"
         "str x19, [sp, #16]\n .cfi_offset x19, -16\n mov x19, sp\n .cfi_def_cfa_register x19\n"
         "sub sp, sp, #400\n mov w0, #100\n bl allocate\n mov sp, x19\n .cfi_def_cfa_register sp\n"
         "ldr x19, [sp, #16]\n ldp x29, x30, [sp], #32\n .cfi_def_cfa_offset 0\n");
FUNCTION(in_register, "str x20, [sp, #-16]!\n .cfi_def_cfa_offset 16\n .cfi_offset x20, -16\n mov x20, x30\n"
                      ".cfi_register x30, x20\n mov w0, #200\n bl allocate\n mov x30, x20\n .cfi_restore x30\n"
                      "ldr x20, [sp], #16\n .cfi_def_cfa_offset 0\n");
FUNCTION(by_expression,
         "mov x9, sp\n stp x29, x30, [sp, #-32]!\n .cfi_def_cfa_offset 32\n .cfi_offset x29, -32\n"
         ".cfi_offset x30, -24\n str x9, [sp, #24]\n .cfi_escape 0x0f, 3, 0x8f, 24, 0x06\n mov w0, #300\n bl allocate\n"
         "ldp x29, x30, [sp], #32\n .cfi_def_cfa sp, 0\n");
FUNCTION(
    by_arithmetic,
    "stp x29, x30, [sp, #-32]!\n .cfi_offset x29, -32\n .cfi_offset x30, -24\n"
    ".cfi_escape 0x0f, 11, 0x8f, 32, 0x8f, 0, 0x30, 0x1a, 0x40, 0x2a, 0x33, 0x24, 0x22\n mov w0, #500\n bl allocate\n"
    "ldp x29, x30, [sp], #32\n .cfi_def_cfa sp, 0\n");
#define PUSH "stp x29, x30, [sp, #-32]!\n .cfi_def_cfa_offset 32\n .cfi_offset x29, -32\n .cfi_offset x30, -24\n"
#define POP  "ldp x29, x30, [sp], #32\n .cfi_def_cfa_offset 0\n"
FUNCTION(keeping, PUSH "str x19, [sp, #16]\n .cfi_escape 0x10, 19, 2, 0x40, 0x1c\n mov x19, #0\n mov w0, #600\n"
                       "bl allocate\n ldr x19, [sp, #16]\n .cfi_restore x19\n" POP);
FUNCTION(inverting, PUSH "mvn x9, x19\n str x9, [sp, #16]\n .cfi_escape 0x16, 19, 4, 0x40, 0x1c, 0x06, 0x20\n"
                         "mov x19, #0\n mov w0, #700\n bl allocate\n ldr x19, [sp, #16]\n mvn x19, x19\n"
                         ".cfi_restore x19\n" POP);
FUNCTION(needing, PUSH "str x19, [sp, #16]\n .cfi_offset x19, -16\n mov x19, sp\n .cfi_def_cfa_register x19\n"
                       "sub sp, sp, #400\n bl keeping\n bl inverting\n mov sp, x19\n .cfi_def_cfa_register sp\n"
                       "ldr x19, [sp, #16]\n" POP);
#endif

typedef float Vector __attribute__((vector_size(64)));

static __attribute__((noinline)) void use(Vector *v)
{
    allocate(400);
    __asm__ volatile("" : : "r"(v));
}

// Its frame is aligned more than its caller's, and of a size that is known when it runs.
static __attribute__((noinline)) void realigned(int n)
{
    Vector v[3];
    char room[n + 1];
    memset(room, 0, n + 1);
    v[0][0] = room[n];
    use(v);
    __asm__ volatile("" : : "r"(v), "r"(room));
}

int main(void)
{
    by_register();
    in_register();
    by_expression();
    realigned(3);
    by_arithmetic();
    needing();
    return 0;
}
