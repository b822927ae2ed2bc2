// SPDX-License-Identifier: GPL-2.0-or-later
//
// The functions of jmassif.h, getenv, and NVTX's way to this library; see requests.h.

#include "host/native/requests.h"
#include "requests/client.h"

#include "jmassif.h"
#include "preload/nvtx.h"
#include "preload/protocol.h"

typedef struct {
    UWord args[6], result;
} Request;

static void handle(void *job)
{
    Request *r = job;
    jm_client_handle_request(jm_native_thread->id, r->args, &r->result);
}

UWord jm_native_request(const NativeRegisters *registers, UWord request, UWord a, UWord b, UWord c, UWord d, UWord e)
{
    Request r = {{request, a, b, c, d, e}, 0};
    if (jm_native_begin(registers)) {
        jm_native_on_own_stack(handle, &r);
        jm_native_end();
    }
    return r.result;
}

void jm_native_leave(const NativeRegisters *registers, UWord row, UWord result, const UWord *words, Addr function)
{
    struct jm_queries queries;
    UWord more = jm_native_request(registers, JM_REQ_LEAVE, row, result, (UWord)words, function, (UWord)&queries);
    while (more) {
        for (UWord i = 0; i < queries.n; i++) {
            struct jm_query *q = &queries.query[i];
            q->result = ((UWord(*)(UWord, UWord, UWord))q->function)(q->args[0], q->args[1], q->args[2]);
        }
        more = jm_native_request(registers, JM_REQ_ANSWER, (UWord)&queries, 0, 0, 0, 0);
    }
}

#define EXPORT(name, parameters, request, a, b)                                                                        \
    void name parameters;                                                                                              \
    NATIVE_EXPORT void name parameters                                                                                 \
    {                                                                                                                  \
        NATIVE_REQUEST(request, a, b, 0, 0);                                                                           \
    }
EXPORT(jmassif_snapshot, (void), JMASSIF_REQUEST_SNAPSHOT, 0, 0)
EXPORT(jmassif_mark, (const char *text), JMASSIF_REQUEST_MARK, text, 0)
EXPORT(jmassif_stage, (const char *text), JMASSIF_REQUEST_STAGE, text, 0)
EXPORT(jmassif_usage, (size_t * bytes), JMASSIF_REQUEST_USAGE, bytes, 0)
EXPORT(jmassif_region_begin, (const char *text), JMASSIF_REQUEST_REGION_BEGIN, text, 0)
EXPORT(jmassif_region_end, (const char *text), JMASSIF_REQUEST_REGION_END, text, 0)
EXPORT(jmassif_tensor, (const void *address, size_t n_bytes), JMASSIF_REQUEST_TENSOR, address, n_bytes)
EXPORT(jmassif_tensor_freed, (const void *address), JMASSIF_REQUEST_TENSOR_FREED, address, 0)
EXPORT(jmassif_request, (unsigned long request, unsigned long a, unsigned long b), request, a, b)

// ---- the environment -----------------------------------------------------------------------------------------

// The rest of `text` if it begins with `beginning`, else NULL.
static const char *after(const char *beginning, const char *text)
{
    while (*beginning && *beginning == *text)
        beginning++, text++;
    return *beginning ? NULL : text;
}

static Bool is_same(const char *one, const char *other)
{
    const char *rest = after(one, other);
    return rest && !*rest;
}

char *getenv(const char *name);
NATIVE_EXPORT char *getenv(const char *name)
{
    static char *(*original)(const char *);
    if (UNLIKELY(!original))
        *(Addr *)&original = jm_native_next("getenv");
    char *value = original(name);
    if (!name)
        return value;
    if (after("PYTORCH_", name) || after("CUDA_", name))
        NATIVE_REQUEST(JM_REQ_VARIABLE, name, value, 0, 0);
    if (!value && is_same(name, "NVTX_INJECTION64_PATH"))
        value = jm_nvtx_library();
    return value;
}

// ---- NVTX ----------------------------------------------------------------------------------------------------

UWord jm_nvtx_request(UWord request, UWord a, UWord b, UWord c, UWord d)
{
    return NATIVE_REQUEST(request, a, b, c, d);
}
