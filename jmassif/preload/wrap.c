// SPDX-License-Identifier: GPL-2.0-or-later
//
// The wrappers of the CUDA libraries' functions, one for each row of cuda_api.def. Each announces its call, makes it
// and reports it. They run in the profiled program, so they allocate nothing, link to nothing, and change nothing that
// the program could see.

#include <valgrind/valgrind.h>

typedef unsigned long UWord;

#include "preload/protocol.h"

// Sonames in Valgrind's Z-encoding (Za: *, Zd: ., Zh: -). The pattern covers versioned and hashed names.
#define SONAME_RUNTIME    Za // any object, as the runtime may be linked statically
#define SONAME_DRIVER     libcudaZdsoZa
#define SONAME_CUDNN      libcudnnZa
#define SONAME_CUBLAS     libcublasZa
#define SONAME_CUFFT      libcufftZa
#define SONAME_CUSPARSE   libcusparseZa
#define SONAME_CUSOLVER   libcusolverZa
#define SONAME_CURAND     libcurandZa
#define SONAME_NCCL       libncclZa
#define SONAME_NVINFER    libnvinferZa
#define SONAME_C10        libc10Za
#define SONAME_TENSORFLOW libtensorflowZa
#define SONAME_LOADER     ldZhlinuxZa
#define SONAME_PYTHON     Za

// ---- around a call -------------------------------------------------------------------------------------------

static void enter(UWord row, const UWord *words)
{
    VALGRIND_DO_CLIENT_REQUEST_STMT(JM_REQ_ENTER, row, words, 0, 0, 0);
}

static void leave(UWord row, UWord result, const UWord *words, UWord address)
{
    struct jm_queries queries;
    UWord more = VALGRIND_DO_CLIENT_REQUEST_EXPR(0, JM_REQ_LEAVE, row, result, words, address, &queries);
    while (more) {
        for (UWord i = 0; i < queries.n; i++) {
            struct jm_query *q = &queries.query[i];
            UWord (*function)(UWord, UWord, UWord) = (UWord(*)(UWord, UWord, UWord))q->function;
            q->result = function(q->args[0], q->args[1], q->args[2]);
        }
        more = VALGRIND_DO_CLIENT_REQUEST_EXPR(0, JM_REQ_ANSWER, &queries, 0, 0, 0, 0);
    }
}

static UWord twin_target[JM_N_ROWS];
static void cover_twin(UWord result, const UWord *words);

// ---- calling conventions -------------------------------------------------------------------------------------

struct extent {
    UWord width, height, depth;
};
struct pitched {
    UWord pointer, pitch, width, height;
};
struct bytes64 {
    UWord word[8];
};
struct bytes128 {
    UWord word[16];
};

#if defined(__x86_64__)
// Calls the original with up to six register words and a structure of `n` words (even) passed by value on the stack.
static UWord call_with_struct(OrigFn original, const UWord reg[6], const UWord *structure, UWord n)
{
    volatile UWord block[9] = {original.nraddr, reg[0], reg[1], reg[2], reg[3], reg[4], reg[5], n, (UWord)structure};
    volatile UWord result;
    __asm__ volatile(VALGRIND_CFI_PROLOGUE VALGRIND_ALIGN_STACK
                     "subq $128, %%rsp\n\t" // the red zone, where the compiler may keep `block`
                     "movq 56(%%rax), %%rcx\n\t"
                     "movq 64(%%rax), %%rsi\n\t"
                     "leaq 0(,%%rcx,8), %%rdx\n\t"
                     "subq %%rdx, %%rsp\n\t"
                     "movq %%rsp, %%rdi\n\t"
                     "cld\n\t"
                     "rep movsq\n\t"
                     "movq 8(%%rax), %%rdi\n\t"
                     "movq 16(%%rax), %%rsi\n\t"
                     "movq 24(%%rax), %%rdx\n\t"
                     "movq 32(%%rax), %%rcx\n\t"
                     "movq 40(%%rax), %%r8\n\t"
                     "movq 48(%%rax), %%r9\n\t"
                     "movq (%%rax), %%rax\n\t" VALGRIND_CALL_NOREDIR_RAX VALGRIND_RESTORE_STACK VALGRIND_CFI_EPILOGUE
                     : "=a"(result)
                     : "a"(&block[0])__FRAME_POINTER
                     : "cc", "memory", __CALLER_SAVED_REGS, "r14", "r15");
    return result;
}
#endif

// The parameters of a WORDS function, and its words as elements of an array.
#define P0  void
#define P1  UWord a0
#define P2  P1, UWord a1
#define P3  P2, UWord a2
#define P4  P3, UWord a3
#define P5  P4, UWord a4
#define P6  P5, UWord a5
#define P7  P6, UWord a6
#define P8  P7, UWord a7
#define P9  P8, UWord a8
#define P10 P9, UWord a9
#define P11 P10, UWord a10
#define P12 P11, UWord a11
#define W0  0
#define W1  a0
#define W2  W1, a1
#define W3  W2, a2
#define W4  W3, a3
#define W5  W4, a4
#define W6  W5, a5
#define W7  W6, a6
#define W8  W7, a7
#define W9  W8, a8
#define W10 W9, a9
#define W11 W10, a10
#define W12 W11, a11
// valgrind.h names its calls differently by number of arguments.
#define CALL0(r, f)  CALL_FN_W_v(r, f)
#define CALL1(r, f)  CALL_FN_W_W(r, f, a0)
#define CALL2(r, f)  CALL_FN_W_WW(r, f, a0, a1)
#define CALL3(r, f)  CALL_FN_W_WWW(r, f, a0, a1, a2)
#define CALL4(r, f)  CALL_FN_W_WWWW(r, f, a0, a1, a2, a3)
#define CALL5(r, f)  CALL_FN_W_5W(r, f, a0, a1, a2, a3, a4)
#define CALL6(r, f)  CALL_FN_W_6W(r, f, a0, a1, a2, a3, a4, a5)
#define CALL7(r, f)  CALL_FN_W_7W(r, f, a0, a1, a2, a3, a4, a5, a6)
#define CALL8(r, f)  CALL_FN_W_8W(r, f, a0, a1, a2, a3, a4, a5, a6, a7)
#define CALL9(r, f)  CALL_FN_W_9W(r, f, a0, a1, a2, a3, a4, a5, a6, a7, a8)
#define CALL10(r, f) CALL_FN_W_10W(r, f, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9)
#define CALL11(r, f) CALL_FN_W_11W(r, f, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10)
#define CALL12(r, f) CALL_FN_W_12W(r, f, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11)

#define PARAMS_WORDS(n)     P##n
#define WORDS_WORDS(n)      W##n
#define CALL_WORDS(n, r, f) CALL##n(r, f)

// The parameter points to a structure with the real ones. The function returns no value, so its result is set to 1.
#define PARAMS_STRUCTURE(n) P##n
#define WORDS_STRUCTURE(n)  ((const UWord *)a0)[0]
#define CALL_STRUCTURE(n, r, f)                                                                                        \
    do {                                                                                                               \
        CALL##n(r, f);                                                                                                 \
        (r) = 1;                                                                                                       \
    } while (0)

#define PARAMS_EXTENT_AT_1(n)   UWord a0, struct extent e
#define WORDS_EXTENT_AT_1(n)    a0, e.width, e.height, e.depth
#define PARAMS_EXTENT_AT_2(n)   UWord a0, UWord a1, struct extent e, UWord a2, UWord a3
#define WORDS_EXTENT_AT_2(n)    a0, a1, e.width, e.height, e.depth, a2, a3
#define PARAMS_HANDLE64_AT_1(n) UWord a0, struct bytes64 h, UWord a1
#define WORDS_HANDLE64_AT_1(n)  a0, h.word[0], a1
#define PARAMS_ID128_AT_2(n)    UWord a0, UWord a1, struct bytes128 id, UWord a2, UWord a3
#define WORDS_ID128_AT_2(n)     a0, a1, a2, a3
#define PARAMS_PITCHED_AT_0(n)  struct pitched at, UWord a0, struct extent e, UWord a1
#define WORDS_PITCHED_AT_0(n)   at.pointer, at.pitch, at.height, e.width, e.height, e.depth

#if defined(__x86_64__)
// A structure of more than 16 bytes by value goes to the stack, past the register arguments (System V ABI, 3.2.3).
#define CALL_EXTENT_AT_1(n, r, f) CALL_FN_W_9W(r, f, a0, 0, 0, 0, 0, 0, e.width, e.height, e.depth)
#define CALL_EXTENT_AT_2(n, r, f) CALL_FN_W_9W(r, f, a0, a1, a2, a3, 0, 0, e.width, e.height, e.depth)
#define CALL_HANDLE64_AT_1(n, r, f)                                                                                    \
    do {                                                                                                               \
        const UWord reg[6] = {a0, a1};                                                                                 \
        (r) = call_with_struct((f), reg, h.word, 8);                                                                   \
    } while (0)
#define CALL_ID128_AT_2(n, r, f)                                                                                       \
    do {                                                                                                               \
        const UWord reg[6] = {a0, a1, a2, a3};                                                                         \
        (r) = call_with_struct((f), reg, id.word, 16);                                                                 \
    } while (0)
#define CALL_PITCHED_AT_0(n, r, f)                                                                                     \
    do {                                                                                                               \
        const UWord reg[6] = {a0, a1};                                                                                 \
        const UWord both[8] = {at.pointer, at.pitch, at.width, at.height, e.width, e.height, e.depth};                 \
        (r) = call_with_struct((f), reg, both, 8);                                                                     \
    } while (0)
#elif defined(__aarch64__)
// A structure of more than 16 bytes by value is a pointer to a copy (AAPCS64, 6.8.2).
#define CALL_EXTENT_AT_1(n, r, f)   CALL_FN_W_WW(r, f, a0, &e)
#define CALL_EXTENT_AT_2(n, r, f)   CALL_FN_W_5W(r, f, a0, a1, &e, a2, a3)
#define CALL_HANDLE64_AT_1(n, r, f) CALL_FN_W_WWW(r, f, a0, &h, a1)
#define CALL_ID128_AT_2(n, r, f)    CALL_FN_W_5W(r, f, a0, a1, &id, a2, a3)
#define CALL_PITCHED_AT_0(n, r, f)  CALL_FN_W_WWWW(r, f, &at, a0, &e, a1)
#else
#error "wrappers are written for x86-64 and AArch64"
#endif

// Expands the arguments before I_WRAP_SONAME_FNNAME_ZU pastes them.
#define WRAPPER(soname, name) I_WRAP_SONAME_FNNAME_ZU(soname, name)

#define API(library, name, n_args, convention, action, kind, p, s)                                                     \
    UWord WRAPPER(SONAME_##library, name)(PARAMS_##convention(n_args))                                                 \
    {                                                                                                                  \
        OrigFn original;                                                                                               \
        VALGRIND_GET_ORIG_FN(original);                                                                                \
        UWord words[JM_MAX_WORDS] = {WORDS_##convention(n_args)};                                                      \
        UWord result;                                                                                                  \
        enter(JM_ROW_##name, words);                                                                                   \
        CALL_##convention(n_args, result, original);                                                                   \
        if (JM_ROW_##name == JM_ROW_cuGetProcAddress || JM_ROW_##name == JM_ROW_cuGetProcAddress_v2)                   \
            cover_twin(result, words);                                                                                 \
        leave(JM_ROW_##name, result, words, original.nraddr);                                                          \
        return result;                                                                                                 \
    }
#include "preload/cuda_api.def"
#undef API

// A twin is a function without a symbol that cuGetProcAddress returns in place of the exported one. Valgrind, which
// redirects the addresses of symbols, cannot wrap it. The program gets a function of ours instead, which does.
#define API(library, name, n_args, convention, action, kind, p, s) TWIN_##library(name, n_args, convention)
#define TWIN_DRIVER(name, n_args, convention)                      TWIN_##convention(name, n_args)
#define TWIN_WORDS(name, n_args)                                                                                       \
    static UWord twin_##name(P##n_args)                                                                                \
    {                                                                                                                  \
        UWord words[JM_MAX_WORDS] = {W##n_args};                                                                       \
        enter(JM_ROW_##name, words);                                                                                   \
        UWord result = ((UWord(*)(P##n_args))twin_target[JM_ROW_##name])(W##n_args);                                   \
        leave(JM_ROW_##name, result, words, twin_target[JM_ROW_##name]);                                               \
        return result;                                                                                                 \
    }
#define TWIN_HANDLE64_AT_1(name, n_args)
#define TWIN_RUNTIME(name, n_args, convention)
#define TWIN_CUDNN      TWIN_RUNTIME
#define TWIN_CUBLAS     TWIN_RUNTIME
#define TWIN_CUFFT      TWIN_RUNTIME
#define TWIN_CUSPARSE   TWIN_RUNTIME
#define TWIN_CUSOLVER   TWIN_RUNTIME
#define TWIN_CURAND     TWIN_RUNTIME
#define TWIN_NCCL       TWIN_RUNTIME
#define TWIN_NVINFER    TWIN_RUNTIME
#define TWIN_C10        TWIN_RUNTIME
#define TWIN_TENSORFLOW TWIN_RUNTIME
#define TWIN_LOADER     TWIN_RUNTIME
#define TWIN_PYTHON     TWIN_RUNTIME
#include "preload/cuda_api.def"
#undef TWIN_WORDS
#undef TWIN_HANDLE64_AT_1
#undef TWIN_RUNTIME

static UWord twin_entry(UWord row)
{
#define TWIN_WORDS(name, n_args)                                                                                       \
    case JM_ROW_##name:                                                                                                \
        return (UWord)&twin_##name;
#define TWIN_HANDLE64_AT_1(name, n_args)
#define TWIN_RUNTIME(name, n_args, convention)
    switch (row) {
#include "preload/cuda_api.def"
    default:
        return 0;
    }
}

static void cover_twin(UWord result, const UWord *words)
{
    const UWord flags = words[3];
    UWord *place = (UWord *)words[1];
    if (result != 0 || !place || !*place)
        return;
    UWord row = VALGRIND_DO_CLIENT_REQUEST_EXPR(0, JM_REQ_TWIN, words[0], *place, flags, 0, 0);
    if (row-- == 0 || !twin_entry(row))
        return;
    if (twin_target[row] && twin_target[row] != *place)
        return; // a second twin of one function stays unwrapped: the first one's wrapper would call the wrong twin
    twin_target[row] = *place;
    *place = twin_entry(row);
}
