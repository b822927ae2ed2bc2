// SPDX-License-Identifier: GPL-2.0-or-later
//
// Replacements for allocation functions where the core's own fall short. Its pvalloc ends the program, and so does its
// new when memory runs out. Its calloc leaves errno alone when the product overflows. These use the core's tags with a
// higher priority.

#include <errno.h>
#include <valgrind/valgrind.h>

typedef unsigned long UWord;

#include "preload/protocol.h"

#define FUNCTION(kind_and_tag, soname, name) kind_and_tag##ZU_##soname##_##name
#define REPLACED(tag, soname, name)          FUNCTION(_vgr##tag, soname, name)
#define WRAPPED(tag, soname, name)           FUNCTION(_vgw##tag, soname, name)

// Weak, as a program need not have a C library.
extern int *__errno_location(void) __attribute__((weak));

static void *or_no_memory(UWord address)
{
    int *place = !address && __errno_location ? __errno_location() : 0;
    if (place)
        *place = ENOMEM;
    return (void *)address;
}

#define CALLOC(soname)                                                                                                 \
    void *REPLACED(10071, soname, calloc)(UWord n, UWord each)                                                         \
    {                                                                                                                  \
        return or_no_memory(VALGRIND_DO_CLIENT_REQUEST_EXPR(0, JM_REQ_CALLOC, n, each, 0, 0, 0));                      \
    }
CALLOC(libcZdsoZa)
CALLOC(VgSoSynsomalloc)

// Some tags differ between releases of Valgrind; configure finds them.
#define PVALLOC_AS(tag, soname)                                                                                        \
    void *REPLACED(tag, soname, pvalloc)(UWord n)                                                                      \
    {                                                                                                                  \
        return or_no_memory(VALGRIND_DO_CLIENT_REQUEST_EXPR(0, JM_REQ_PVALLOC, n, 0, 0, 0, 0));                        \
    }
#define PVALLOC(tag, soname) PVALLOC_AS(tag, soname)
PVALLOC(PVALLOC_TAG, libcZdsoZa)

// The core replaces malloc and its variants only where they are global symbols. In musl, which has no soname or its
// own, malloc is weak: the replaced realloc and free would get blocks that they do not know.
#define SAME(tag, soname, name)                                                                                        \
    UWord REPLACED(tag, libcZdsoZa, name)(UWord, UWord, UWord);                                                        \
    UWord REPLACED(tag, soname, name)(UWord one, UWord two, UWord three)                                               \
    {                                                                                                                  \
        return REPLACED(tag, libcZdsoZa, name)(one, two, three);                                                       \
    }
#define ALL_SAME(soname)                                                                                               \
    SAME(10010, soname, malloc)                                                                                        \
    SAME(10050, soname, free)                                                                                          \
    SAME(10090, soname, realloc)                                                                                       \
    SAME(10110, soname, memalign)                                                                                      \
    SAME(10160, soname, posix_memalign)                                                                                \
    CALLOC(soname)
ALL_SAME(NONE)
ALL_SAME(libcZdmuslZa)

// Without memory, call the library's own function, which runs the new handler and throws. The failure is not recorded
// here: the library calls malloc, which is recorded, and fails again unless the handler has freed memory.
#define WRAP_NEW(soname, name, parameters, alignment, call)                                                            \
    void *WRAPPED(10031, soname, name) parameters                                                                      \
    {                                                                                                                  \
        OrigFn original;                                                                                               \
        VALGRIND_GET_ORIG_FN(original);                                                                                \
        UWord address = VALGRIND_DO_CLIENT_REQUEST_EXPR(0, JM_REQ_NEW, n, alignment, 0, 0, 0);                         \
        if (!address)                                                                                                  \
            call;                                                                                                      \
        return (void *)address;                                                                                        \
    }
#define NEW(soname, name) WRAP_NEW(soname, name, (UWord n), 0, CALL_FN_W_W(address, original, n))
#define NEW_ALIGNED(soname, name)                                                                                      \
    WRAP_NEW(soname, name, (UWord n, UWord alignment), alignment, CALL_FN_W_WW(address, original, n, alignment))
#define ALL_NEW(soname)                                                                                                \
    NEW(soname, _Znwm)                                                                                                 \
    NEW(soname, _Znam)                                                                                                 \
    NEW_ALIGNED(soname, _ZnwmSt11align_val_t)                                                                          \
    NEW_ALIGNED(soname, _ZnamSt11align_val_t)
ALL_NEW(libstdcZpZpZa)
ALL_NEW(libcZpZpZa)
ALL_NEW(VgSoSynsomalloc)
