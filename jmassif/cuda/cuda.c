// SPDX-License-Identifier: GPL-2.0-or-later
//
// Wrapped calls from their announcement to their report; see cuda.h. Between the two a call is a scope of its thread.
// calls.c records its effect on memory, and query.c queries the API. This file handles what all calls share: failures,
// out-of-memory events, counters, and samples of the device's free memory.

#include "cuda/cuda.h"
#include "attribution/kind.h"
#include "base/array.h"
#include "base/client_memory.h"
#include "base/clock.h"
#include "base/hooks.h"
#include "base/text.h"
#include "calls/scope.h"
#include "cuda/api.h"
#include "cuda/calls.h"
#include "cuda/query.h"
#include "events/exhaustion.h"
#include "events/snapshot.h"
#include "heap/containers.h"
#include "host/host.h"
#include "ledger/live_tensors.h"
#include "machine/manifest.h"
#include "trace/trace.h"

// ---- the wrapped functions -----------------------------------------------------------------------------------

// The wrappers in the preload library are generated from the same rows, so a row's number identifies a function on both
// sides.
#define API(library, name, n_args, convention, action, kind, p, s)                                                     \
    {#name, LIBRARY_##library, ACTION_##action, KIND_##kind, p, s},
static const CudaFunction functions[JM_N_ROWS] = {
#include "preload/cuda_api.def"
};
#undef API

// Number of the name in the trace's strings.
static UInt function_name(const CudaFunction *function)
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

// For an `address` that cuGetProcAddress returned for the name at `symbol`: 1 + the row under which its calls must be
// reported. 0: nothing to do, as the address is a wrapped function's or the function is not wrapped.
static UWord uncovered_row(Addr symbol, Addr address, UWord flags)
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

// ---- calls that failed ---------------------------------------------------------------------------------------

typedef struct {
    UInt name;
    UInt code;
    ULong count;
    Bool changed;
} Failure;

static Array failures = JM_ARRAY("jm.cuda", Failure);

static void count_failure(UInt name, UInt code)
{
    Failure *f = jm_array_find_or_add(&failures, &(Failure){.name = name, .code = code}, 2 * sizeof(UInt));
    f->count++;
    f->changed = True;
}

static Bool has_failed(const CudaCall *call)
{
    if (jm_calls_is(call->function, RETURNS_POINTER))
        return call->result == 0;
    if (jm_calls_is(call->function, ENDS_PROGRAM))
        return False;
    return (UInt)call->result != 0; // an enumeration: the upper half of the register is undefined
}

// ---- memory that ran out, or is free -------------------------------------------------------------------------

#define ERROR_OUT_OF_MEMORY 2 // cudaErrorMemoryAllocation, CUDA_ERROR_OUT_OF_MEMORY

// A call fails because one inside it failed: only the innermost is recorded.
static void record_exhaustion(const CudaCall *call)
{
    if (jm_scope_has(call->tid, SCOPE_FAILED))
        return;
    jm_scope_mark(call->tid, SCOPE_FAILED);
    Requested asked_for = jm_calls_requested(call);
    Bool is_told =
        jm_exhaustion_failed(call->tid, call->function->name, ERROR_OUT_OF_MEMORY, asked_for.kind, asked_for.bytes);
    if (is_told && !jm_calls_is_capturing())
        jm_query_room_for_event(call);
}

// Counts only the program's own allocations, not those inside of other calls.
static void count_attempt(const CudaCall *call, Bool failed)
{
    const CudaFunction *function = call->function;
    if (!jm_calls_is(function, IS_TRIED_AGAIN) || jm_scope_depth(call->tid) != 1)
        return;
    jm_exhaustion_tried(call->tid, jm_calls_requested(call).bytes, failed, jm_calls_is(function, IS_PIECE),
                        jm_calls_is(function, COUNTS_AS_RETRY) && function->kind != KIND_PINNED);
}

#define LOOK_EVERY_MS 100

// Sample the device's free memory only after a call of the program that moved device memory, and not too often: after
// LOOK_EVERY_MS, or when the ledger has grown by 1/16 plus 1 MiB.
static Bool is_look_due(const CudaCall *call)
{
    static ULong next_look_ms, enough_bytes;
    ULong held = jm_ledger_total(SIDE_DEVICE);
    if (!jm_memory_is_measured_apart() || !jm_calls_is(call->function, MOVES_MEMORY) || jm_calls_is_capturing() ||
        jm_scope_depth(call->tid) != 1 || jm_kind_side(call->function->kind) != SIDE_DEVICE ||
        (held < enough_bytes && jm_clock_ms() < next_look_ms))
        return False;
    next_look_ms = jm_clock_ms() + LOOK_EVERY_MS;
    if (held >= enough_bytes)
        enough_bytes = held + held / 16 + (1 << 20);
    return True;
}

// ---- a call begins and ends ----------------------------------------------------------------------------------

static UInt n_ends_under_way; // counted, since the functions that end an interpreter call each other

static UInt scope_name(const CudaFunction *function, const UWord *words)
{
    HChar file[300], name[320];
    if (!jm_calls_is(function, LOADS_LIBRARY))
        return function_name(function);
    if (!words[0] || !jm_read_string(words[0], file, sizeof file) || !file[0])
        return jm_trace_string("dlopen");
    jm_format(name, sizeof name, "dlopen %s", jm_text_file_name(file));
    return jm_trace_string(name);
}

void jm_cuda_program_ends(ThreadId tid)
{
    if (n_ends_under_way)
        return;
    jm_live_tensors_settle(tid);
    jm_containers_write();
    jm_snapshot_take(SNAPSHOT_END);
}

static Bool is_small_copy(const CudaCall *call)
{
    return jm_calls_is(call->function, IS_COPY) && jm_calls_requested(call).bytes < JM_LEAST_COPY;
}

static void enter(ThreadId tid, const CudaFunction *function, const UWord *words)
{
    if (jm_calls_is(function, IS_REPORT) || is_small_copy(&(CudaCall){.function = function, .words = words}))
        return;
    if (jm_calls_is(function, ENDS_PROGRAM)) {
        jm_cuda_program_ends(tid);
        n_ends_under_way++;
    }
    jm_scope_enter(tid, scope_name(function, words), jm_calls_is(function, IS_TOLD));
}

// True if there is a query for the wrapper.
static Bool leave(const CudaCall *call)
{
    const CudaFunction *function = call->function;
    if (jm_calls_is(function, IS_REPORT)) {
        jm_calls_act(call);
        return False;
    }
    UInt name = scope_name(function, call->words);
    Bool failed = has_failed(call);
    if (is_small_copy(call)) {
        if (failed)
            count_failure(name, (UInt)call->result);
        else
            jm_calls_act(call);
        return False;
    }
    jm_query_begin(call);
    if (!failed || jm_calls_is(function, EVEN_IF_FAILED))
        jm_calls_act(call);
    if (failed && !jm_calls_is(function, LOADS_LIBRARY))
        count_failure(name, (UInt)call->result);
    if (failed && (function->library == LIBRARY_RUNTIME || function->library == LIBRARY_DRIVER) &&
        (UInt)call->result == ERROR_OUT_OF_MEMORY)
        record_exhaustion(call);
    if (!failed && is_look_due(call))
        jm_query_room(call);
    count_attempt(call, failed);
    if (jm_calls_is(function, LOADS_LIBRARY))
        jm_hooks.library_loaded(call->tid);
    n_ends_under_way -= n_ends_under_way && jm_calls_is(function, ENDS_PROGRAM);
    jm_scope_leave(call->tid, name, !failed || !jm_calls_is(function, LOADS_LIBRARY));
    return call->queries->n != 0;
}

// Wrappers are trusted, but any program can forge a request: check rows and pointers.
static Bool is_sound(const UWord *args)
{
    switch (args[0]) {
    case JM_REQ_ENTER:
        return args[1] < JM_N_ROWS && jm_is_readable(args[2], JM_MAX_WORDS * sizeof(UWord));
    case JM_REQ_LEAVE:
        return args[1] < JM_N_ROWS && jm_is_readable(args[3], JM_MAX_WORDS * sizeof(UWord)) &&
               host_is_writable(args[5], sizeof(struct jm_queries));
    case JM_REQ_ANSWER:
        return host_is_writable(args[1], sizeof(struct jm_queries));
    default:
        return True;
    }
}

Bool jm_cuda_handle_request(ThreadId tid, UWord *args, UWord *result)
{
    *result = 0;
    if (!is_sound(args)) {
        jm_calls_refuse();
        return True;
    }
    switch (args[0]) {
    case JM_REQ_ENTER:
        enter(tid, &functions[args[1]], (const UWord *)args[2]);
        return True;
    case JM_REQ_LEAVE:
        *result = leave(&(CudaCall){.tid = tid,
                                    .function = &functions[args[1]],
                                    .result = args[2],
                                    .words = (const UWord *)args[3],
                                    .address = args[4],
                                    .queries = (struct jm_queries *)args[5]});
        return True;
    case JM_REQ_ANSWER:
        *result = jm_query_answered(tid, (struct jm_queries *)args[1]);
        return True;
    case JM_REQ_TWIN:
        *result = uncovered_row(args[1], args[2], args[3]);
        return True;
    default:
        return False;
    }
}

void jm_cuda_write_counters(void)
{
    for (Word i = 0; i < jm_array_n(&failures); i++) {
        Failure *f = jm_array_at(&failures, i);
        if (f->changed)
            jm_trace_failure(f->name, f->code, f->count);
        f->changed = False;
    }
    jm_calls_write_counters();
}
