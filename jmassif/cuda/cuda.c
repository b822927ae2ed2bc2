// SPDX-License-Identifier: GPL-2.0-or-later
//
// CUDA calls as the wrappers report them. A runtime call is made of driver calls: the innermost that reports a block
// makes it, the calls around it only lend it their names in the stack. So what an outer call returns is recorded only
// when no inner call has (the runtime may reach the driver by ways that cannot be wrapped).

#include "cuda/cuda.h"
#include "base/client_memory.h"
#include "base/elf.h"
#include "base/clock.h"
#include "cuda/layout.h"
#include "cuda/device_blocks.h"
#include "snapshot/exhaustion.h"
#include "base/options.h"
#include "pages/pages.h"
#include "ledger/pending.h"
#include "stack/scope.h"
#include "snapshot/snapshot.h"
#include "cuda/tensor.h"
#include "trace/trace.h"

#include "preload/protocol.h"

typedef enum {
    ACTION_ALLOC,         // words[p] is where the pointer is returned, words[s] the size
    ACTION_ALLOC_V1,      // likewise, with a pointer and a size of 32 bits
    ACTION_ALLOC_HOST_V1, // with a size of 32 bits
    ACTION_ALLOC_PITCH,
    ACTION_ALLOC_PITCH_V1,
    ACTION_ALLOC_3D,
    ACTION_RUNTIME_ARRAY,
    ACTION_RUNTIME_MIPMAP,
    ACTION_DRIVER_ARRAY,
    ACTION_DRIVER_ARRAY_V1,
    ACTION_DRIVER_MIPMAP,
    ACTION_ALLOC_ASYNC, // from the device's current pool
    ACTION_ALLOC_FROM_POOL,
    ACTION_FREE, // words[p] is the pointer
    ACTION_FREE_V1,
    ACTION_FREE_ARRAY,
    ACTION_REGISTER, // host memory that exists already: counted, not recorded
    ACTION_UNREGISTER,
    ACTION_POOL_CREATE,
    ACTION_POOL_DESTROY,
    ACTION_POOL_TRIM,
    ACTION_SYNCHRONIZE, // pools may give back what they hold in reserve
    ACTION_IPC_OPEN,    // opening a handle again returns the same pointer, to be closed as often
    ACTION_IPC_CLOSE,
    ACTION_EXTERNAL_IMPORT,
    ACTION_EXTERNAL_DESTROY,
    ACTION_VA_RESERVE, // address space only
    ACTION_VA_FREE,
    ACTION_VMM_CREATE,
    ACTION_VMM_MAP,
    ACTION_VMM_UNMAP,
    ACTION_VMM_RELEASE,
    ACTION_VMM_RETAIN,
    ACTION_VMM_IMPORT,
    ACTION_STARTUP, // a scope after which the device can be asked what it is
    ACTION_CONTEXT_DESTROY,
    ACTION_PRIMARY_RETAIN,
    ACTION_PRIMARY_RELEASE,
    ACTION_PRIMARY_RESET,
    ACTION_DEVICE_RESET,
    ACTION_CAPTURE_BEGIN, // of a stream, into a graph
    ACTION_CAPTURE_END,
    ACTION_PROC_ADDRESS,
    ACTION_SCOPE,         // nothing but a scope
    ACTION_SCOPE_POINTER, // likewise, and the result is a pointer
    ACTION_DLOPEN,
    ACTION_TENSOR, // a framework's report; no API call, so no scope
    ACTION_OUT_OF_MEMORY,
    ACTION_BFC_ALLOC, // what a framework's allocator hands out: the result is the address
    ACTION_BFC_FREE,
    ACTION_PROGRAM_END // a snapshot before the call
} Action;

typedef enum {
    LIBRARY_RUNTIME,
    LIBRARY_DRIVER,
    LIBRARY_CUDNN,
    LIBRARY_CUBLAS,
    LIBRARY_CUFFT,
    LIBRARY_CUSPARSE,
    LIBRARY_CUSOLVER,
    LIBRARY_CURAND,
    LIBRARY_NCCL,
    LIBRARY_NVINFER,
    LIBRARY_C10,
    LIBRARY_TENSORFLOW,
    LIBRARY_LOADER,
    LIBRARY_PYTHON
} Library;

typedef struct {
    const HChar *name;
    UChar library;
    UChar action;
    UChar kind;
    UChar p;
    UChar s;
} Row;

#define API(library, name, n_args, convention, action, kind, p, s)                                                     \
    {#name, LIBRARY_##library, ACTION_##action, KIND_##kind, p, s},
static const Row rows[JM_N_ROWS] = {
#include "preload/cuda_api.def"
};
#undef API

// ---- names, failures, counters -------------------------------------------------------------------------------

static UInt name_ids[JM_N_ROWS];

static UInt name_of(UWord row)
{
    if (!name_ids[row])
        name_ids[row] = jm_trace_string(rows[row].name);
    return name_ids[row];
}

typedef struct {
    UInt name;
    UInt code;
    ULong count;
    Bool changed;
} Failure;

static XArray *failures;

static struct {
    ULong free_unknown;
    ULong reserved_bytes; // address space, live
    ULong twins_uncovered;
} counters;

static UInt n_ends_under_way; // the functions that end an interpreter call each other

static void count_failure(UInt name, UInt code)
{
    if (!failures)
        failures = VG_(newXA)(VG_(malloc), "jm.cuda", VG_(free), sizeof(Failure));
    for (Word i = 0; i < VG_(sizeXA)(failures); i++) {
        Failure *f = VG_(indexXA)(failures, i);
        if (f->name == name && f->code == code) {
            f->count++;
            f->changed = True;
            return;
        }
    }
    Failure fresh = {name, code, 1, True};
    VG_(addToXA)(failures, &fresh);
}

void jm_cuda_write_counters(void)
{
    for (Word i = 0; failures && i < VG_(sizeXA)(failures); i++) {
        Failure *f = VG_(indexXA)(failures, i);
        if (f->changed)
            jm_trace_failure(f->name, f->code, f->count);
        f->changed = False;
    }
    if (counters.free_unknown)
        jm_trace_counter("cuda-free-of-unknown-pointer", counters.free_unknown);
    if (jm_device_blocks_n_stale())
        jm_trace_counter("cuda-block-ended-unseen", jm_device_blocks_n_stale());
    if (jm_stack_n_completed())
        jm_trace_counter("stack-completed-from-api-call", jm_stack_n_completed());
    if (counters.twins_uncovered)
        jm_trace_counter("cuda-function-not-covered", counters.twins_uncovered);
    static ULong told_registered, told_reserved;
    if (jm_device_registered_bytes() != told_registered)
        jm_trace_counter("host-registered-bytes", told_registered = jm_device_registered_bytes());
    if (counters.reserved_bytes != told_reserved)
        jm_trace_counter("cuda-address-space-reserved-bytes", told_reserved = counters.reserved_bytes);
}

// ---- queries -------------------------------------------------------------------------------------------------

// What is asked of the API after a call, in the order in which one answer leads to the next question.
enum {
    ASK_CONTEXT,    // which context is current: whose is the block
    ASK_DEVICE,     // which device is current,
    ASK_POOL,       // what is its pool,
    ASK_RESERVED,   // how much does the pool reserve
    ASK_RANGE,      // how large is imported memory
    ASK_INTEGRATED, // does the device share the host's memory
    ASK_FREE,       // how much of its memory is free, and how much it has: of an event of running out,
    ASK_FREE_NOW    // of the machine
};

typedef struct {
    const HChar *context, *device, *pool, *reserved, *range, *attribute, *free;
} QueryNames;

static const QueryNames driver_names = {"cuCtxGetCurrent",       "cuCtxGetDevice",          "cuDeviceGetMemPool",
                                        "cuMemPoolGetAttribute", "cuMemGetAddressRange_v2", "cuDeviceGetAttribute",
                                        "cuMemGetInfo_v2"};
static const QueryNames runtime_names = {
    NULL, "cudaGetDevice",          "cudaDeviceGetMemPool", "cudaMemPoolGetAttribute",
    NULL, "cudaDeviceGetAttribute", "cudaMemGetInfo"};

#define MEMPOOL_ATTRIBUTE_RESERVED_CURRENT 5  // CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, cuda.h
#define DEVICE_ATTRIBUTE_INTEGRATED        18 // CU_DEVICE_ATTRIBUTE_INTEGRATED, cuda.h

// The state of one thread's questions. A wrapper asks between LEAVE and its return, so one set at a time per thread; it
// lives in `subject`, in the wrapper's own frame.
typedef struct {
    UWord block_key;
    UWord pool;
    UWord address; // of the wrapped function, to find its library by
    Library library;
    Bool is_async;
    Bool is_import;
    Bool is_synchronize;
    Bool is_look_due;
} Asked;

static Asked *asked_by; // per thread

static Asked *asked(ThreadId tid)
{
    if (!asked_by)
        asked_by = VG_(calloc)("jm.cuda", VG_N_THREADS, sizeof *asked_by);
    return &asked_by[tid];
}

static Bool is_unified_known;
static Bool is_discrete; // the device has memory of its own, which no figure of the machine's tells

// Looks up each function once per library: the table of dynamic symbols is searched from end to end.
static Addr function_in(Addr library_code, const HChar *name)
{
    typedef struct {
        Addr code;
        const HChar *name;
        Addr found;
    } Known;
    static XArray *known;
    if (!name)
        return 0;
    if (!known)
        known = VG_(newXA)(VG_(malloc), "jm.cuda", VG_(free), sizeof(Known));
    for (Word i = 0; i < VG_(sizeXA)(known); i++) {
        Known *k = VG_(indexXA)(known, i);
        if (k->code == library_code && k->name == name)
            return k->found;
    }
    Known fresh = {library_code, name, jm_find_dynamic_symbol(library_code, name)};
    VG_(addToXA)(known, &fresh);
    return fresh.found;
}

static void add_query(struct jm_queries *queries, Addr function, UWord a0, UWord a1, UWord a2)
{
    struct jm_query *q = &queries->query[queries->n++];
    q->function = function;
    q->args[0] = a0;
    q->args[1] = a1;
    q->args[2] = a2;
    q->result = 0;
    q->out = 0;
}

// Puts the question into the wrapper's frame. False: the library has no such function.
static Bool ask(ThreadId tid, struct jm_queries *queries, UWord purpose, UWord subject)
{
    const Asked *state = asked(tid);
    const QueryNames *names = state->library == LIBRARY_DRIVER ? &driver_names : &runtime_names;
    UWord out = (UWord)&queries->query[0].out;
    Addr function = 0;
    queries->n = 0;
    queries->purpose = purpose;
    queries->subject = subject;
    switch (purpose) {
    case ASK_CONTEXT:
        if ((function = function_in(state->address, names->context)))
            add_query(queries, function, out, 0, 0);
        break;
    case ASK_DEVICE:
        if ((function = function_in(state->address, names->device)))
            add_query(queries, function, out, 0, 0);
        break;
    case ASK_POOL:
        if ((function = function_in(state->address, names->pool)))
            add_query(queries, function, out, subject, 0);
        break;
    case ASK_RESERVED:
        if ((function = function_in(state->address, names->reserved)))
            add_query(queries, function, subject, MEMPOOL_ATTRIBUTE_RESERVED_CURRENT, out);
        break;
    case ASK_RANGE: // (base or null, size, pointer)
        if ((function = function_in(state->address, names->range)))
            add_query(queries, function, 0, out, subject);
        break;
    case ASK_INTEGRATED:
        if ((function = function_in(state->address, names->attribute)))
            add_query(queries, function, out, DEVICE_ATTRIBUTE_INTEGRATED, 0);
        break;
    case ASK_FREE:
    case ASK_FREE_NOW: // (free, total): the second query is only a place for the total
        queries->query[1].out = 0;
        if ((function = function_in(state->address, names->free)))
            add_query(queries, function, out, (UWord)&queries->query[1].out, 0);
        break;
    }
    return function != 0;
}

// How the pool of a stream-ordered block stands; how large an import is.
static Bool ask_about_size(ThreadId tid, struct jm_queries *queries)
{
    const Asked *state = asked(tid);
    if (state->pool)
        return ask(tid, queries, ASK_RESERVED, state->pool);
    if (state->is_import)
        return ask(tid, queries, ASK_RANGE, state->block_key);
    return state->is_async && ask(tid, queries, ASK_DEVICE, 0);
}

// How the pools stand that hold something in reserve, one after the other.
static Bool ask_about_pools(ThreadId tid, struct jm_queries *queries)
{
    Asked *state = asked(tid);
    state->pool = jm_device_next_caching_pool(state->pool);
    return state->pool && ask(tid, queries, ASK_RESERVED, state->pool);
}

// After an allocation: first whose it is.
static Bool ask_after_alloc(ThreadId tid, struct jm_queries *queries)
{
    return ask(tid, queries, ASK_CONTEXT, 0) || ask_about_size(tid, queries);
}

static void tell_device_memory(ULong free_bytes, ULong total_bytes)
{
    ULong now = jm_clock_now();
    jm_trace_system(now, "device-total", total_bytes);
    jm_trace_system(now, "device-free", free_bytes);
    jm_trace_system(now, "device-ledger", jm_ledger_total(SIDE_DEVICE));
}

static Bool answer(ThreadId tid, struct jm_queries *queries)
{
    Asked *state = asked(tid);
    const struct jm_query *q = &queries->query[0];
    if ((UInt)q->result != 0)
        return False;
    DeviceBlock *b = jm_device_block_find(SPACE_POINTER, state->block_key);
    switch (queries->purpose) {
    case ASK_CONTEXT:
        for (Space space = 0; space < N_SPACES; space++) {
            DeviceBlock *newest = jm_device_block_find(space, state->block_key);
            if (newest && !newest->context)
                newest->context = q->out;
        }
        jm_device_register_context(state->block_key, q->out);
        return ask_about_size(tid, queries);
    case ASK_DEVICE:
        return ask(tid, queries, ASK_POOL, (UInt)q->out);
    case ASK_POOL:
        state->pool = q->out;
        if (b && b->kind == KIND_POOL)
            jm_device_block_set_pool(b, state->pool);
        return ask(tid, queries, ASK_RESERVED, state->pool);
    case ASK_RESERVED:
        jm_device_pool_reserved(state->pool, q->out);
        return state->is_synchronize && ask_about_pools(tid, queries);
    case ASK_RANGE:
        if (b)
            jm_device_block_grow(tid, b, q->out);
        return False;
    case ASK_INTEGRATED:
        is_unified_known = True;
        is_discrete = !(UInt)q->out;
        jm_trace_manifest("memory", is_discrete ? "discrete" : "unified");
        return False;
    case ASK_FREE:
        jm_exhaustion_figure(tid, "device-free", q->out);
        jm_exhaustion_figure(tid, "device-total", queries->query[1].out);
        jm_trace_flush();
        return False;
    case ASK_FREE_NOW:
        tell_device_memory(q->out, queries->query[1].out);
        return False;
    }
    return False;
}

// ---- contexts ------------------------------------------------------------------------------------------------

typedef struct {
    UInt device;
    UWord context;
    UInt n_retained;
} Primary;

static XArray *primaries;

static Primary *primary_of(UInt device)
{
    if (!primaries)
        primaries = VG_(newXA)(VG_(malloc), "jm.cuda", VG_(free), sizeof(Primary));
    for (Word i = 0; i < VG_(sizeXA)(primaries); i++) {
        Primary *p = VG_(indexXA)(primaries, i);
        if (p->device == device)
            return p;
    }
    Primary fresh = {device, 0, 0};
    return VG_(indexXA)(primaries, VG_(addToXA)(primaries, &fresh));
}

// ---- cuMemCreate's handles -----------------------------------------------------------------------------------

// cuMemRetainAllocationHandle may return another number for the same memory.
typedef struct {
    UWord alias;
    UWord handle;
} Alias;

static XArray *aliases;

static UWord handle_behind(UWord handle)
{
    for (Word i = 0; aliases && i < VG_(sizeXA)(aliases); i++) {
        const Alias *a = VG_(indexXA)(aliases, i);
        if (a->alias == handle)
            return a->handle;
    }
    return handle;
}

static void retain_handle(UWord handle, Addr address)
{
    DeviceBlock *b = jm_device_mapped_at(address);
    if (!b)
        b = jm_device_block_find(SPACE_VMM, handle);
    if (!b)
        return;
    b->n_handles++;
    if (handle != b->key && handle_behind(handle) == handle) {
        if (!aliases)
            aliases = VG_(newXA)(VG_(malloc), "jm.cuda", VG_(free), sizeof(Alias));
        Alias a = {handle, b->key};
        VG_(addToXA)(aliases, &a);
    }
}

// ---- what calls do -------------------------------------------------------------------------------------------

// A block that the call returned, unless an inner call has made it already. True if it was made here.
static Bool made(ThreadId tid, Space space, UWord key, Kind kind, ULong bytes)
{
    if (!key || jm_scope_has_made(tid, kind))
        return False;
    jm_device_block_open(tid, space, key, kind, bytes);
    asked(tid)->block_key = key;
    return True;
}

static void freed(ThreadId tid, Space space, UWord key)
{
    if (!key || jm_scope_has_freed(tid))
        return;
    DeviceBlock *b = jm_device_block_find(space, key);
    if (b)
        jm_device_block_close(tid, b);
    else
        counters.free_unknown++;
}

// cuIpcOpenMemHandle of a handle that is open returns the pointer it has.
static Bool opened_again(ThreadId tid, UWord key)
{
    DeviceBlock *b = jm_device_block_find(SPACE_POINTER, key);
    if (!b || b->kind != KIND_IMPORTED || jm_scope_has_made(tid, KIND_IMPORTED))
        return False;
    b->n_handles++;
    jm_scope_mark_made(tid, KIND_IMPORTED);
    return True;
}

static void closed(ThreadId tid, UWord key)
{
    DeviceBlock *b = jm_device_block_find(SPACE_POINTER, key);
    if (b && b->n_handles > 1 && !jm_scope_has_freed(tid)) {
        b->n_handles--;
        jm_scope_mark_freed(tid);
    } else {
        freed(tid, SPACE_POINTER, key);
    }
}

static UWord returned(const UWord *words, UInt p)
{
    UWord value;
    jm_read_word(words[p], &value);
    return value;
}

// Streams that are being captured. Then only a few functions may be called.
static UInt n_captures;

// Does what the successful call did. Returns True if there are queries to run.
static Bool act(ThreadId tid, const Row *row, const UWord *words, struct jm_queries *queries)
{
    Asked *state = asked(tid);
    Kind kind = row->kind;
    UWord p = words[row->p];
    UWord place = returned(words, row->p); // what stands where the call returns its pointer; 0 if words[p] is none
    Bool is_new = False;
    switch ((Action)row->action) {
    case ACTION_ALLOC:
        is_new = made(tid, SPACE_POINTER, place, kind, words[row->s]);
        break;
    case ACTION_ALLOC_V1:
        is_new = made(tid, SPACE_POINTER, (UInt)place, kind, (UInt)words[row->s]);
        break;
    case ACTION_ALLOC_HOST_V1:
        is_new = made(tid, SPACE_POINTER, place, kind, (UInt)words[row->s]);
        break;
    case ACTION_ALLOC_PITCH: // (pointer, pitch, width, height, …)
        is_new = made(tid, SPACE_POINTER, place, kind, returned(words, 1) * words[3]);
        break;
    case ACTION_ALLOC_PITCH_V1:
        is_new = made(tid, SPACE_POINTER, (UInt)place, kind, (ULong)(UInt)returned(words, 1) * (UInt)words[3]);
        break;
    case ACTION_ALLOC_3D: // (cudaPitchedPtr: pointer, pitch, …; width, height, depth)
    {
        UWord pitch;
        jm_read_word(words[0] + sizeof(UWord), &pitch);
        is_new = made(tid, SPACE_POINTER, place, kind, pitch * words[2] * words[3]);
        break;
    }
    case ACTION_RUNTIME_ARRAY:
        is_new = made(tid, SPACE_ARRAY, place, kind, jm_runtime_array_bytes(words, row->s != 0));
        break;
    case ACTION_RUNTIME_MIPMAP:
        is_new = made(tid, SPACE_ARRAY, place, kind, jm_runtime_mipmap_bytes(words));
        break;
    case ACTION_DRIVER_ARRAY:
        is_new = made(tid, SPACE_ARRAY, place, kind, jm_driver_array_bytes(words[1], row->s != 0, 1));
        break;
    case ACTION_DRIVER_ARRAY_V1:
        is_new = made(tid, SPACE_ARRAY, place, kind, jm_driver_array_v1_bytes(words[1], row->s != 0));
        break;
    case ACTION_DRIVER_MIPMAP:
        is_new = made(tid, SPACE_ARRAY, place, kind, jm_driver_array_bytes(words[1], True, words[2]));
        break;
    case ACTION_ALLOC_ASYNC:
        is_new = made(tid, SPACE_POINTER, place, kind, words[row->s]);
        state->is_async = True;
        break;
    case ACTION_ALLOC_FROM_POOL: // (pointer, size, pool, stream)
        is_new = made(tid, SPACE_POINTER, place, kind, words[row->s]);
        if (is_new) {
            jm_device_block_set_pool(jm_device_block_find(SPACE_POINTER, place), words[2]);
            state->pool = words[2];
        }
        break;
    case ACTION_FREE_V1:
        freed(tid, SPACE_POINTER, (UInt)p);
        return False;
    case ACTION_FREE: {
        DeviceBlock *b = jm_device_block_find(SPACE_POINTER, p);
        UWord pool = b ? b->pool : 0;
        freed(tid, SPACE_POINTER, p);
        state->pool = pool;
        return pool && ask(tid, queries, ASK_RESERVED, pool);
    }
    case ACTION_FREE_ARRAY:
        freed(tid, SPACE_ARRAY, p);
        return False;
    case ACTION_REGISTER:
        jm_device_register(words[0], words[1]);
        state->block_key = words[0];
        return ask(tid, queries, ASK_CONTEXT, 0);
    case ACTION_UNREGISTER:
        jm_device_unregister(words[0]);
        return False;
    case ACTION_POOL_CREATE:
        return False;
    case ACTION_POOL_DESTROY:
        jm_device_pool_destroyed(p);
        return False;
    case ACTION_POOL_TRIM:
        state->pool = p;
        return ask(tid, queries, ASK_RESERVED, p);
    case ACTION_SYNCHRONIZE:
        state->is_synchronize = True;
        return ask_about_pools(tid, queries);
    case ACTION_IPC_OPEN:
        is_new = !opened_again(tid, place) && made(tid, SPACE_POINTER, place, kind, 0);
        state->is_import = True;
        break;
    case ACTION_IPC_CLOSE:
        closed(tid, p);
        return False;
    case ACTION_EXTERNAL_IMPORT:
        is_new = made(tid, SPACE_EXTERNAL, place, kind, jm_external_memory_bytes(words[1]));
        break;
    case ACTION_EXTERNAL_DESTROY:
        freed(tid, SPACE_EXTERNAL, p);
        return False;
    case ACTION_VA_RESERVE:
        counters.reserved_bytes += words[row->s];
        return False;
    case ACTION_VA_FREE:
        counters.reserved_bytes -= words[row->s] < counters.reserved_bytes ? words[row->s] : counters.reserved_bytes;
        return False;
    case ACTION_VMM_CREATE:
        is_new = made(tid, SPACE_VMM, place, kind, words[row->s]);
        break;
    case ACTION_VMM_IMPORT:
        is_new = made(tid, SPACE_VMM, place, kind, 0);
        break;
    case ACTION_VMM_MAP: // (address, size, offset, handle, flags)
        jm_device_map(tid, words[0], words[1], handle_behind(words[3]));
        jm_exhaustion_pieces_used(tid);
        return False;
    case ACTION_VMM_UNMAP:
        jm_device_unmap(tid, words[0], words[1]);
        return False;
    case ACTION_VMM_RELEASE: {
        DeviceBlock *b = jm_device_block_find(SPACE_VMM, handle_behind(p));
        if (b && b->n_handles) {
            b->n_handles--;
            jm_device_block_release_if_unused(tid, b);
        } else {
            counters.free_unknown++;
        }
        return False;
    }
    case ACTION_VMM_RETAIN: // (handle, address)
        retain_handle(place, words[1]);
        return False;
    case ACTION_STARTUP:
        break;
    case ACTION_PRIMARY_RETAIN: // (context, device)
        primary_of((UInt)words[1])->context = place;
        primary_of((UInt)words[1])->n_retained++;
        break;
    case ACTION_PRIMARY_RELEASE: {
        Primary *primary = primary_of((UInt)p);
        if (primary->n_retained && --primary->n_retained == 0)
            jm_device_blocks_close_context(tid, primary->context);
        return False;
    }
    case ACTION_PRIMARY_RESET:
        primary_of((UInt)p)->n_retained = 0;
        jm_device_blocks_close_context(tid, primary_of((UInt)p)->context);
        return False;
    case ACTION_CONTEXT_DESTROY:
        jm_device_blocks_close_context(tid, p);
        return False;
    case ACTION_DEVICE_RESET:
        // Over a driver that is seen, its own reset has ended the context's blocks; these are the runtime's alone.
        jm_device_blocks_close_context(tid, 0);
        return False;
    case ACTION_CAPTURE_BEGIN:
        n_captures += jm_scope_depth(tid) == 1;
        return False;
    case ACTION_PROC_ADDRESS:
    case ACTION_CAPTURE_END:
    case ACTION_SCOPE:
    case ACTION_SCOPE_POINTER:
    case ACTION_DLOPEN:
    case ACTION_TENSOR:
    case ACTION_OUT_OF_MEMORY:
    case ACTION_BFC_ALLOC:
    case ACTION_BFC_FREE:
        return False;
    case ACTION_PROGRAM_END:
        n_ends_under_way--;
        return False;
    }
    if (is_new)
        return ask_after_alloc(tid, queries);
    if ((row->action == ACTION_STARTUP || row->action == ACTION_PRIMARY_RETAIN) && !is_unified_known &&
        jm_options.memory == MEMORY_AUTO)
        return ask(tid, queries, ASK_INTEGRATED, 0);
    return False;
}

// ---- requests ------------------------------------------------------------------------------------------------

// Scopes that are worth a record: what start-up is made of, not each allocation.
static Bool is_told(const Row *row)
{
    switch ((Action)row->action) {
    case ACTION_SCOPE:
    case ACTION_SCOPE_POINTER:
    case ACTION_STARTUP:
    case ACTION_PRIMARY_RETAIN:
    case ACTION_DLOPEN:
        return True;
    default:
        return False;
    }
}

static Bool has_failed(const Row *row, UWord result)
{
    if (row->action == ACTION_SCOPE_POINTER || row->action == ACTION_DLOPEN)
        return result == 0;
    if (row->action == ACTION_PROGRAM_END)
        return False;
    return (UInt)result != 0; // an enumeration: the upper half of the register is anything
}

static UInt scope_name(const Row *row, UWord row_number, const UWord *words)
{
    HChar file[300], name[320];
    if (row->action != ACTION_DLOPEN)
        return name_of(row_number);
    if (!words[0] || !jm_read_string(words[0], file, sizeof file) || !file[0])
        return jm_trace_string("dlopen");
    VG_(snprintf)(name, sizeof name, "dlopen %s", VG_(basename)(file));
    return jm_trace_string(name);
}

// c10::Device is two bytes, type and index, in the lower half of a register; the type 1 is CUDA
// (c10/core/DeviceType.h).
#define C10_CUDA 1

static void report_tensor(ThreadId tid, const Row *row, const UWord *words)
{
    UWord device = words[row->s];
    if ((device & 0xff) != C10_CUDA)
        return;
    TensorReport report = {
        words[0], (Long)words[1], False, row->s == 4, words[2], words[3], (signed char)(device >> 8)};
    jm_tensor_report(tid, &report);
}

// TensorFlow's allocator is also used for memory of the host, which is nobody's segment.
static void report_bfc(ThreadId tid, const Row *row, UWord result, const UWord *words)
{
    TensorReport report = {.is_exact = True};
    report.address = row->action == ACTION_BFC_ALLOC ? result : words[row->p];
    report.bytes = row->action == ACTION_BFC_ALLOC ? (Long)words[row->s] : -1;
    if (report.address && report.bytes)
        jm_tensor_report(tid, &report);
}

#define ERROR_OUT_OF_MEMORY 2 // cudaErrorMemoryAllocation, CUDA_ERROR_OUT_OF_MEMORY

static Bool has_run_out(const Row *row, UWord result)
{
    return (row->library == LIBRARY_RUNTIME || row->library == LIBRARY_DRIVER) && (UInt)result == ERROR_OUT_OF_MEMORY;
}

typedef struct {
    Kind kind;
    ULong bytes; // 0: not known
} Request;

static Request request_of(const Row *row, const UWord *words)
{
    switch ((Action)row->action) {
    case ACTION_ALLOC:
    case ACTION_ALLOC_ASYNC:
    case ACTION_ALLOC_FROM_POOL:
    case ACTION_VMM_CREATE:
        return (Request){row->kind, words[row->s]};
    case ACTION_ALLOC_V1:
    case ACTION_ALLOC_HOST_V1:
        return (Request){row->kind, (UInt)words[row->s]};
    case ACTION_ALLOC_PITCH: // (pointer, pitch, width, height, …): rows are padded, so this is the least
        return (Request){row->kind, words[2] * words[3]};
    case ACTION_ALLOC_PITCH_V1:
        return (Request){row->kind, (ULong)(UInt)words[2] * (UInt)words[3]};
    case ACTION_ALLOC_3D: // (pointer; width, height, depth)
        return (Request){row->kind, words[1] * words[2] * words[3]};
    case ACTION_RUNTIME_ARRAY:
        return (Request){row->kind, jm_runtime_array_bytes(words, row->s != 0)};
    case ACTION_RUNTIME_MIPMAP:
        return (Request){row->kind, jm_runtime_mipmap_bytes(words)};
    case ACTION_DRIVER_ARRAY:
        return (Request){row->kind, jm_driver_array_bytes(words[1], row->s != 0, 1)};
    case ACTION_DRIVER_ARRAY_V1:
        return (Request){row->kind, jm_driver_array_v1_bytes(words[1], row->s != 0)};
    case ACTION_DRIVER_MIPMAP:
        return (Request){row->kind, jm_driver_array_bytes(words[1], True, words[2])};
    default: // a context, a module
        return (Request){KIND_DRIVER, 0};
    }
}

// Allocations as the program makes them: not those inside of others.
static void count_attempt(ThreadId tid, const Row *row, const UWord *words, Bool failed)
{
    Bool is_block = row->action == ACTION_ALLOC || row->action == ACTION_VMM_CREATE;
    if ((is_block || row->action == ACTION_ALLOC_ASYNC || row->action == ACTION_ALLOC_FROM_POOL) &&
        jm_scope_depth(tid) == 1)
        jm_exhaustion_tried(tid, words[row->s], failed, row->action == ACTION_VMM_CREATE,
                            is_block && row->kind != KIND_PINNED);
}

// Functions of a framework that are no API calls and open no scope.
static Bool is_framework(const Row *row)
{
    return row->library == LIBRARY_C10 || row->library == LIBRARY_TENSORFLOW;
}

#define LOOK_EVERY_MS 100

// Whether to look how much the device has left: after a call of the program that has allocated or freed some, so that
// there is a context, but not too often: when time has passed, or much has come since.
static Bool is_look_due(ThreadId tid, const Row *row)
{
    static ULong next_look_ms, enough_bytes;
    ULong held = jm_ledger_total(SIDE_DEVICE);
    Bool deals_in_blocks = row->action == ACTION_ALLOC || row->action == ACTION_ALLOC_PITCH ||
                           row->action == ACTION_ALLOC_ASYNC || row->action == ACTION_ALLOC_FROM_POOL ||
                           row->action == ACTION_VMM_CREATE || row->action == ACTION_FREE;
    if (!is_discrete || !deals_in_blocks || n_captures || jm_scope_depth(tid) != 1 ||
        jm_kind_side(row->kind) != SIDE_DEVICE || (held < enough_bytes && jm_clock_ms() < next_look_ms))
        return False;
    next_look_ms = jm_clock_ms() + LOOK_EVERY_MS;
    if (held >= enough_bytes)
        enough_bytes = held + held / 16 + (1 << 20);
    return True;
}

static Bool look_if_due(ThreadId tid, struct jm_queries *queries)
{
    Bool is_due = asked(tid)->is_look_due;
    asked(tid)->is_look_due = False;
    return is_due && ask(tid, queries, ASK_FREE_NOW, 0);
}

// Calls fail because those inside of them do: the innermost is told.
static Bool run_out(ThreadId tid, const Row *row, const UWord *words, struct jm_queries *queries)
{
    if (jm_scope_has_failed(tid))
        return False;
    jm_scope_mark_failed(tid);
    Request request = request_of(row, words);
    Bool is_told = jm_exhaustion_failed(tid, row->name, ERROR_OUT_OF_MEMORY, request.kind, request.bytes);
    return is_told && !n_captures && ask(tid, queries, ASK_FREE, 0);
}

static Bool leave(ThreadId tid, UWord row_number, UWord result, const UWord *words, Addr address,
                  struct jm_queries *queries)
{
    const Row *row = &rows[row_number];
    Bool more = False;
    if (row->action == ACTION_TENSOR) {
        report_tensor(tid, row, words);
        return False;
    }
    if (row->action == ACTION_OUT_OF_MEMORY) {
        jm_exhaustion_framework(tid, words[0], words[1], words[2]);
        return False;
    }
    if (row->action == ACTION_BFC_ALLOC || row->action == ACTION_BFC_FREE) {
        report_bfc(tid, row, result, words);
        return False;
    }
    UInt name = scope_name(row, row_number, words);
    Asked *state = asked(tid);
    VG_(memset)(state, 0, sizeof *state);
    state->library = row->library;
    state->address = address;
    if (row->action == ACTION_CAPTURE_END && jm_scope_depth(tid) == 1 && n_captures)
        n_captures--; // it is over even if it has failed
    if (has_failed(row, result)) {
        if (row->action != ACTION_DLOPEN) // a dlopen that finds nothing is how Python searches
            count_failure(name, (UInt)result);
        if (has_run_out(row, result))
            more = run_out(tid, row, words, queries);
    } else {
        more = act(tid, row, words, queries);
        state->is_look_due = is_look_due(tid, row);
        more = more || look_if_due(tid, queries);
    }
    count_attempt(tid, row, words, has_failed(row, result));
    if (row->action == ACTION_DLOPEN)
        jm_pages_measure_scope(tid);
    jm_scope_leave(tid, name);
    return more;
}

// cuGetProcAddress handed out `address` for `symbol`. Calls of it are seen if the address is a wrapped symbol's.
static UWord uncovered_row(Addr symbol, Addr address, UWord flags)
{
    HChar asked_for[128], exact[160];
    const HChar *entry;
    if (!jm_read_string(symbol, asked_for, sizeof asked_for))
        return 0;
    if (VG_(get_fnname_if_entry)(VG_(current_DiEpoch)(), address, &entry))
        for (UWord i = 0; i < JM_N_ROWS; i++)
            if (VG_STREQ(rows[i].name, entry))
                return 0;
    // The name stands for the newest form; the flag 2 (per-thread default stream, cuda.h) for the _ptsz form.
    static const HChar *const forms[] = {"_v2", "", NULL};
    for (UInt f = 0; forms[f]; f++) {
        VG_(snprintf)(exact, sizeof exact, "%s%s%s", asked_for, forms[f], (flags & 2) && !forms[f][0] ? "_ptsz" : "");
        for (UWord i = 0; i < JM_N_ROWS; i++)
            if (rows[i].library == LIBRARY_DRIVER && VG_STREQ(rows[i].name, exact))
                return 1 + i;
    }
    for (UWord i = 0; i < JM_N_ROWS; i++)
        if (rows[i].library == LIBRARY_DRIVER && VG_STREQ(rows[i].name, asked_for))
            return 1 + i;
    return 0;
}

Bool jm_cuda_handle_request(ThreadId tid, UWord *args, UWord *result)
{
    *result = 0;
    switch (args[0]) {
    case JM_REQ_ENTER:
        tl_assert(args[1] < JM_N_ROWS);
        if (is_framework(&rows[args[1]]))
            return True;
        if (rows[args[1]].action == ACTION_PROGRAM_END && n_ends_under_way++ == 0) {
            jm_pending_settle(tid);
            jm_snapshot_take("end");
        }
        jm_scope_enter(tid, scope_name(&rows[args[1]], args[1], (UWord *)args[2]), VG_(get_SP)(tid),
                       is_told(&rows[args[1]]));
        return True;
    case JM_REQ_LEAVE:
        *result = leave(tid, args[1], args[2], (UWord *)args[3], args[4], (struct jm_queries *)args[5]);
        return True;
    case JM_REQ_ANSWER:
        *result = answer(tid, (struct jm_queries *)args[1]) || look_if_due(tid, (struct jm_queries *)args[1]);
        return True;
    case JM_REQ_TWIN:
        *result = uncovered_row(args[1], args[2], args[3]);
        return True;
    default:
        return False;
    }
}
