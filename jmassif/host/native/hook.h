// SPDX-License-Identifier: GPL-2.0-or-later
//
// What all hooks share. A hook is a function of this library that the program calls instead of another's. It makes the
// real call, and records it:
//
//     void *malloc(size_t bytes)
//     {
//         void *p = real.malloc(bytes);
//         NATIVE_RECORD(allocated, &((Allocation){p, bytes}));
//         return p;
//     }
//
// Meanwhile the thread holds the recorder's lock, and is on its stack. Nothing there may call malloc, stdio, dl… or
// getenv of the C library, nor wait for another thread of the program.

#ifndef JM_NATIVE_HOOK_H
#define JM_NATIVE_HOOK_H

#include "host/types.h"
#include "unwind/dwarf.h"

// A function that the program finds here before it finds the real one. Assembly may call it with a stack that is not
// aligned, which the C library's bear.
#if defined(__x86_64__)
#define NATIVE_EXPORT __attribute__((visibility("default"), force_align_arg_pointer))
#else
#define NATIVE_EXPORT __attribute__((visibility("default")))
#endif

// Registers of a hook by DWARF's numbers; on arm64 the hook's own address comes last, as DWARF has no number for it.
typedef struct {
#if defined(__x86_64__)
#define NATIVE_IP JM_REG_RA
#else
#define NATIVE_IP JM_N_REGISTERS
#endif
    UWord word[NATIVE_IP + 1];
} NativeRegisters;

// A thread of the program. Records are never freed, but used again once the kernel's thread has gone.
typedef struct {
    ThreadId id;
    Int kernel_id;
    UWord pointer;                    // FS, TPIDR_EL0
    Bool is_recording;                // holds the lock: its other calls are not recorded
    const NativeRegisters *registers; // of the hook, while it is recording
    Addr sp;                          // theirs
    Bool is_forking;                  // and has the lock until it has forked, or others take it
    Bool is_masked;                   // signals are blocked until it leaves the recorder; `mask` is that of before
    UInt n_kept;                      // signals that came meanwhile; the mask holds then, too
    struct {
        UWord word[16]; // a siginfo_t
    } kept[4];
    ULong mask;
    SizeT bytes_of_new; // of an aligned operator new that is about to call malloc's kin
} NativeThread;

// NULL until the thread's first event.
extern __thread NativeThread *jm_native_thread __attribute__((tls_model("initial-exec")));

// Registers that a function keeps for its caller, as they are here: from them the hook's own unwind table leads to its
// caller. The others are not needed.
#if defined(__x86_64__)
#define NATIVE_REGISTERS(r)                                                                                            \
    __asm__ volatile("movq %%rbx, 24(%0)\n\tmovq %%rbp, 48(%0)\n\tmovq %%rsp, 56(%0)\n\tmovq %%r12, 96(%0)\n\t"        \
                     "movq %%r13, 104(%0)\n\tmovq %%r14, 112(%0)\n\tmovq %%r15, 120(%0)\n\t"                           \
                     "leaq 0(%%rip), %%rax\n\tmovq %%rax, 128(%0)"                                                     \
                     :                                                                                                 \
                     : "r"(r)                                                                                          \
                     : "rax", "memory")
#elif defined(__aarch64__)
#define NATIVE_REGISTERS(r)                                                                                            \
    __asm__ volatile("stp x18, x19, [%0, 144]\n\tstp x20, x21, [%0, 160]\n\tstp x22, x23, [%0, 176]\n\t"               \
                     "stp x24, x25, [%0, 192]\n\tstp x26, x27, [%0, 208]\n\tstp x28, x29, [%0, 224]\n\t"               \
                     "mov x16, sp\n\tstp x30, x16, [%0, 240]\n\tadr x16, .\n\tstr x16, [%0, 256]"                      \
                     :                                                                                                 \
                     : "r"(r)                                                                                          \
                     : "x16", "memory")
#endif

// Take the lock for an event of this thread. False if there is nothing to record: the recorder has not begun or has
// ended, or this thread is inside it already (a signal handler, a call that the recorder itself makes).
Bool jm_native_begin(const NativeRegisters *registers);

void jm_native_end(void);

// Run a function on the recorder's own stack, under the lock: the program's threads may have small ones.
void jm_native_on_own_stack(void (*f)(void *job), void *job);

// Record by a function, in the hook itself: its registers are kept meanwhile. False if there was nothing to record.
#define NATIVE_RECORD(f, job)                                                                                          \
    ({                                                                                                                 \
        NativeRegisters registers_;                                                                                    \
        void *job_ = (job);                                                                                            \
        NATIVE_REGISTERS(&registers_);                                                                                 \
        Bool records_ = jm_native_begin(&registers_);                                                                  \
        if (records_) {                                                                                                \
            jm_native_on_own_stack(f, job_);                                                                           \
            jm_native_end();                                                                                           \
        }                                                                                                              \
        records_;                                                                                                      \
    })

// The address of a function in the first object after this library that exports it, in the order in which the loader
// searches; 0 if none does.
Addr jm_native_next(const HChar *name);

// Return whether that object exports another function, too.
Bool jm_native_next_is_with(const HChar *name, const HChar *other);

#endif
