// SPDX-License-Identifier: GPL-2.0-or-later
//
// What the program asks its environment. A script may set variables after its start (os.environ), and a library reads
// them when it is first used: what it was told then is what holds, and the tool hears of it. NVTX's question for a tool
// is answered here.

#include <valgrind/valgrind.h>

#include "preload/nvtx.h"
#include "preload/protocol.h"

// The rest of `text` if it begins like this, else 0.
static const char *after(const char *beginning, const char *text)
{
    while (*beginning && *beginning == *text)
        beginning++, text++;
    return *beginning ? 0 : text;
}

static int is_same(const char *one, const char *other)
{
    const char *rest = after(one, other);
    return rest && !*rest;
}

char *I_WRAP_SONAME_FNNAME_ZU(libcZdsoZa, getenv)(const char *name);
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
    if (!value && is_same(name, "NVTX_INJECTION64_PATH"))
        value = jm_nvtx_library();
    return value;
}
