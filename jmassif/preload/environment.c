// SPDX-License-Identifier: GPL-2.0-or-later
//
// Reports the variables of PyTorch and CUDA that the program reads from its environment. A script may set them after
// its start (os.environ), and a library reads them at first use, so only the value at that moment counts. NVTX's query
// for a tool library is answered here, too.

#include <valgrind/valgrind.h>

#include "preload/nvtx.h"
#include "preload/protocol.h"

// The rest of `text` if it begins with `beginning`, else 0.
static const char *after(const char *beginning, const char *text)
{
    while (*beginning && *beginning == *text)
        beginning++, text++;
    return *beginning ? 0 : text;
}

char *I_WRAP_SONAME_FNNAME_ZU(libcZdsoZa, getenv)(const char *name)
{
    OrigFn original;
    VALGRIND_GET_ORIG_FN(original);
    char *value;
    CALL_FN_W_W(value, original, name);
    if (!name)
        return value;
    if (after("PYTORCH_", name) || after("CUDA_", name))
        VALGRIND_DO_CLIENT_REQUEST_STMT(JM_REQ_VARIABLE, name, value, 0, 0, 0);
    const char *rest = after("NVTX_INJECTION64_PATH", name);
    if (!value && rest && !*rest)
        value = jm_nvtx_library();
    return value;
}

unsigned long jm_nvtx_request(unsigned long request, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
    return VALGRIND_DO_CLIENT_REQUEST_EXPR(0, request, a, b, c, d, 0);
}

// exit() runs this destructor, and then flushes the C library's buffers. _exit() and quick_exit() do neither, and the
// core must not flush for them (post_clo_init in host/valgrind/tool.c).
static void __attribute__((destructor)) tell_end(void)
{
    VALGRIND_DO_CLIENT_REQUEST_STMT(JM_REQ_EXIT, 0, 0, 0, 0, 0);
}
