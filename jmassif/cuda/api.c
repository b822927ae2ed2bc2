// SPDX-License-Identifier: GPL-2.0-or-later
//
// The table of wrapped functions; see api.h. The wrappers in the preload library are generated from the same rows, so a
// row's number identifies a function on both sides.

#include "cuda/api.h"
#include "attribution/kind.h"
#include "base/client_memory.h"
#include "base/text.h"
#include "host/host.h"
#include "trace/trace.h"

#define API(library, name, n_args, convention, action, kind, p, s)                                                     \
    {#name, LIBRARY_##library, ACTION_##action, KIND_##kind, p, s},
static const CudaFunction functions[JM_N_ROWS] = {
#include "preload/cuda_api.def"
};
#undef API

const CudaFunction *jm_cuda_function(UWord row)
{
    jm_assert(row < JM_N_ROWS);
    return &functions[row];
}

UInt jm_cuda_function_name(const CudaFunction *function)
{
    static UInt names[JM_N_ROWS];
    UInt *name = &names[function - functions];
    if (!*name)
        *name = jm_trace_string(function->name);
    return *name;
}

// 1 + the row of the driver's function; 0: none.
static UWord driver_row(const HChar *name)
{
    for (UWord i = 0; i < JM_N_ROWS; i++)
        if (functions[i].library == LIBRARY_DRIVER && jm_text_equal(functions[i].name, name))
            return 1 + i;
    return 0;
}

UWord jm_cuda_uncovered_row(Addr symbol, Addr address, UWord flags)
{
    HChar asked_for[128], exact[160];
    if (!jm_read_string(symbol, asked_for, sizeof asked_for))
        return 0;
    const HChar *entry = host_function_entry(address);
    if (entry)
        for (UWord i = 0; i < JM_N_ROWS; i++)
            if (jm_text_equal(functions[i].name, entry))
                return 0;
    // The name means the newest form; the flag 2 (per-thread default stream, cuda.h) means the _ptsz form.
    static const HChar *const forms[] = {"_v2", "", NULL};
    for (UInt f = 0; forms[f]; f++) {
        jm_format(exact, sizeof exact, "%s%s%s", asked_for, forms[f], (flags & 2) && !forms[f][0] ? "_ptsz" : "");
        UWord row = driver_row(exact);
        if (row)
            return row;
    }
    return driver_row(asked_for);
}
