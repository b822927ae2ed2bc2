// SPDX-License-Identifier: GPL-2.0-or-later
//
// Queries and their answers; see query.h. A query is a function's address and arguments, written into the wrapper's
// stack frame with a purpose that identifies the answer. Its subject is kept here per thread: a wrapper runs queries
// between the report of its call and its return, so a thread has one set of queries at a time.

#include "cuda/query.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/libc.h"
#include "base/per_thread.h"
#include "device/blocks.h"
#include "events/exhaustion.h"
#include "machine/manifest.h"
#include "symbols/elf.h"
#include "trace/trace.h"

// Purposes of queries, in the order in which one answer leads to the next query.
typedef enum {
    ASK_CONTEXT,    // the current context, which owns the block
    ASK_DEVICE,     // the current device
    ASK_POOL,       // the device's current pool
    ASK_RESERVED,   // bytes that the pool reserves
    ASK_RANGE,      // size of imported memory
    ASK_INTEGRATED, // does the device share the host's memory?
    ASK_VMM,        // does it have cuMemCreate?
    ASK_FREE,       // the device's free and total memory, for an out-of-memory event
    ASK_FREE_NOW    // the same, for the machine's figures
} Purpose;

// Names of the functions to call; NULL: the library has none.
typedef struct {
    const HChar *context, *device, *pool, *reserved, *range, *attribute, *free;
} QueryNames;

static const QueryNames driver_names = {"cuCtxGetCurrent",       "cuCtxGetDevice",          "cuDeviceGetMemPool",
                                        "cuMemPoolGetAttribute", "cuMemGetAddressRange_v2", "cuDeviceGetAttribute",
                                        "cuMemGetInfo_v2"};
static const QueryNames runtime_names = {
    NULL, "cudaGetDevice",          "cudaDeviceGetMemPool", "cudaMemPoolGetAttribute",
    NULL, "cudaDeviceGetAttribute", "cudaMemGetInfo"};

#define MEMPOOL_ATTRIBUTE_RESERVED_CURRENT 5   // CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, cuda.h
#define DEVICE_ATTRIBUTE_INTEGRATED        18  // CU_DEVICE_ATTRIBUTE_INTEGRATED, cuda.h
#define DEVICE_ATTRIBUTE_VMM               102 // CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED

// Subject of a thread's queries.
typedef struct {
    QuerySubject subject;
    Addr address; // of the wrapped function, to find its library
    Library library;
    Bool is_of_all_pools;
    Bool is_room_wanted; // ASK_FREE_NOW follows the other queries
} Asked;

static PerThread asked_by = JM_PER_THREAD("jm.cuda", Asked, NULL);

static Asked *asked(ThreadId tid)
{
    return JM_OF_THREAD(&asked_by, Asked, tid);
}

void jm_query_begin(const CudaCall *call)
{
    *asked(call->tid) = (Asked){.address = call->address, .library = call->function->library};
    call->queries->n = 0;
}

typedef struct {
    Addr code;
    const HChar *name;
    Addr found;
} Known;

static Array known = JM_ARRAY("jm.cuda", Known);

void jm_query_unmapped(Addr start, SizeT bytes)
{
    for (Word i = jm_array_n(&known) - 1; i >= 0; i--) {
        const Known *k = jm_array_at(&known, i);
        if (k->code - start < bytes || k->found - start < bytes)
            jm_array_remove(&known, i);
    }
}

// Looks up each function once per library, as a look-up scans the whole table of dynamic symbols.
static Addr function_in(Addr library_code, const HChar *name)
{
    if (!name)
        return 0;
    Known wanted = {library_code, name, 0};
    const Known *k = jm_array_find(&known, &wanted, sizeof wanted.code + sizeof wanted.name);
    if (k)
        return k->found;
    wanted.found = jm_find_dynamic_symbol(library_code, name);
    jm_array_add(&known, &wanted);
    return wanted.found;
}

// Writes the query into the wrapper's frame.
static Bool ask(ThreadId tid, struct jm_queries *queries, Purpose purpose, UWord about)
{
    const Asked *state = asked(tid);
    const QueryNames *names = state->library == LIBRARY_DRIVER ? &driver_names : &runtime_names;
    UWord out = (UWord)&queries->query[0].out, second_out = (UWord)&queries->query[1].out;
    const struct {
        const HChar *name;
        UWord args[3];
    } questions[] = {
        [ASK_CONTEXT] = {names->context, {out}},
        [ASK_DEVICE] = {names->device, {out}},
        [ASK_POOL] = {names->pool, {out, about}},
        [ASK_RESERVED] = {names->reserved, {about, MEMPOOL_ATTRIBUTE_RESERVED_CURRENT, out}},
        [ASK_RANGE] = {names->range, {0, out, about}}, // (base or null, size, pointer)
        [ASK_INTEGRATED] = {names->attribute, {out, DEVICE_ATTRIBUTE_INTEGRATED}},
        [ASK_VMM] = {names->attribute, {out, DEVICE_ATTRIBUTE_VMM}},
        // (free, total): the second query only provides room for the total
        [ASK_FREE] = {names->free, {out, second_out}},
        [ASK_FREE_NOW] = {names->free, {out, second_out}},
    };
    Addr function = function_in(state->address, questions[purpose].name);
    struct jm_query *query = &queries->query[0];
    memcpy(query->args, questions[purpose].args, sizeof query->args);
    query->function = function;
    query->result = query->out = queries->query[1].out = 0;
    queries->n = function != 0;
    queries->purpose = purpose;
    queries->subject = about;
    return function != 0;
}

// Queries the reserve of a stream-ordered block's pool, or the size of an import.
static Bool ask_about_size(ThreadId tid, struct jm_queries *queries)
{
    const QuerySubject *subject = &asked(tid)->subject;
    if (subject->pool)
        return ask(tid, queries, ASK_RESERVED, subject->pool);
    if (subject->is_imported)
        return ask(tid, queries, ASK_RANGE, subject->key);
    return subject->is_async && ask(tid, queries, ASK_DEVICE, 0);
}

static Bool ask_about_next_pool(ThreadId tid, struct jm_queries *queries)
{
    QuerySubject *subject = &asked(tid)->subject;
    subject->pool = jm_pool_next_caching(subject->pool);
    return subject->pool && ask(tid, queries, ASK_RESERVED, subject->pool);
}

void jm_query_block(const CudaCall *call, QuerySubject subject)
{
    asked(call->tid)->subject = subject;
    if (!ask(call->tid, call->queries, ASK_CONTEXT, 0))
        ask_about_size(call->tid, call->queries);
}

void jm_query_pool(const CudaCall *call, UWord pool)
{
    asked(call->tid)->subject.pool = pool;
    ask(call->tid, call->queries, ASK_RESERVED, pool);
}

void jm_query_caching_pools(const CudaCall *call)
{
    asked(call->tid)->is_of_all_pools = True;
    ask_about_next_pool(call->tid, call->queries);
}

void jm_query_integrated(const CudaCall *call)
{
    if (!jm_memory_model_is_known())
        ask(call->tid, call->queries, ASK_INTEGRATED, 0);
}

void jm_query_room_for_event(const CudaCall *call)
{
    ask(call->tid, call->queries, ASK_FREE, 0);
}

void jm_query_room(const CudaCall *call)
{
    asked(call->tid)->is_room_wanted = call->queries->n != 0;
    if (!call->queries->n)
        ask(call->tid, call->queries, ASK_FREE_NOW, 0);
}

static void use_answer(ThreadId tid, struct jm_queries *queries)
{
    Asked *state = asked(tid);
    UWord out = queries->query[0].out;
    ULong now;
    DeviceBlock *block = jm_device_block_find(SPACE_POINTER, state->subject.key);
    switch ((Purpose)queries->purpose) {
    case ASK_CONTEXT:
        for (Space space = 0; space < N_SPACES; space++) {
            block = jm_device_block_find(space, state->subject.key);
            if (block && !block->context)
                block->context = out;
        }
        ask_about_size(tid, queries);
        break;
    case ASK_DEVICE:
        ask(tid, queries, ASK_POOL, (UInt)out);
        break;
    case ASK_POOL:
        state->subject.pool = out;
        if (block && block->kind == KIND_POOL)
            jm_device_block_set_pool(block, out);
        ask(tid, queries, ASK_RESERVED, out);
        break;
    case ASK_RESERVED:
        jm_pool_reserved(state->subject.pool, out);
        if (state->is_of_all_pools)
            ask_about_next_pool(tid, queries);
        break;
    case ASK_RANGE:
        if (block)
            jm_device_block_grow(tid, block, out);
        break;
    case ASK_INTEGRATED:
        jm_memory_model_set(!(UInt)out);
        ask(tid, queries, ASK_VMM, 0);
        break;
    case ASK_VMM:
        jm_trace_manifest("cuda-vmm", (UInt)out ? "yes" : "no");
        break;
    case ASK_FREE:
        jm_exhaustion_figure(tid, "device-free", out);
        jm_exhaustion_figure(tid, "device-total", queries->query[1].out);
        jm_trace_flush();
        break;
    case ASK_FREE_NOW:
        now = jm_clock_now();
        jm_trace_system(now, "device-total", queries->query[1].out);
        jm_trace_system(now, "device-free", out);
        jm_trace_system(now, "device-ledger", jm_ledger_total(SIDE_DEVICE));
        break;
    }
}

Bool jm_query_answered(ThreadId tid, struct jm_queries *queries)
{
    Bool has_failed = (UInt)queries->query[0].result != 0, is_room_wanted = asked(tid)->is_room_wanted;
    queries->n = 0;
    if (!has_failed)
        use_answer(tid, queries);
    if (queries->n)
        return True;
    asked(tid)->is_room_wanted = False;
    return is_room_wanted && ask(tid, queries, ASK_FREE_NOW, 0);
}
