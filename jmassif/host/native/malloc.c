// SPDX-License-Identifier: GPL-2.0-or-later
//
// malloc and its kin. The program's own allocator does the work; what it has done is recorded. strdup and its like call
// malloc, and are seen there, with their callers. So does the C++ library's operator new; an allocator that has one of
// its own (jemalloc, tcmalloc, mimalloc) does not call itself.
//
// A free is recorded before the real one, and a realloc's old block is taken out before: in between another thread may
// be given the address.

#include "base/libc.h"
#include "base/options.h"
#include "base/text.h"
#include "cuda/cuda.h"
#include "heap/blocks.h"
#include "heap/heap.h"
#include "host/host.h"
#include "host/native/hook.h"
#include "host/native/mappings.h"
#include "host/native/objects.h"
#include "host/native/process.h"
#include "host/native/recording.h"
#include "host/native/thread.h"
#include "python/python.h"

#include <errno.h>

static struct {
    void *(*malloc)(SizeT bytes);
    void *(*calloc)(SizeT n, SizeT each);
    void *(*realloc)(void *p, SizeT bytes);
    void (*free)(void *p);
    void *(*memalign)(SizeT align, SizeT bytes);
    void *(*aligned_alloc)(SizeT align, SizeT bytes);
    Int (*posix_memalign)(void **place, SizeT align, SizeT bytes);
    void *(*valloc)(SizeT bytes);
    void *(*pvalloc)(SizeT bytes);
    SizeT (*malloc_usable_size)(void *p);
} real;

static const struct {
    const HChar *name;
    void *place;
} originals[] = {
    {"malloc", &real.malloc},
    {"calloc", &real.calloc},
    {"realloc", &real.realloc},
    {"free", &real.free},
    {"memalign", &real.memalign},
    {"aligned_alloc", &real.aligned_alloc},
    {"posix_memalign", &real.posix_memalign},
    {"valloc", &real.valloc},
    {"pvalloc", &real.pvalloc},
    {"malloc_usable_size", &real.malloc_usable_size},
};

// May be called before this library's constructor: the first object that runs may allocate.
static __attribute__((noinline)) void find_originals(void)
{
    for (UInt i = 0; i < sizeof originals / sizeof *originals; i++)
        *(Addr *)originals[i].place = jm_native_next(originals[i].name);
    // Of tcmalloc's first block it changes.
    if (!jm_native_next_is_with("malloc", "gnu_get_libc_version"))
        real.malloc_usable_size = NULL;
}

static inline void prepare(void)
{
    if (UNLIKELY(!real.malloc))
        find_originals();
}

SizeT host_heap_usable(Addr address, SizeT bytes, Bool is_small)
{
    SizeT usable = real.malloc_usable_size ? real.malloc_usable_size((void *)address) : bytes;
    return usable < bytes ? bytes : usable;
}

Addr host_map_heap(SizeT bytes)
{
    return 0; // blocks are the program's allocator's
}

// ---- recording -----------------------------------------------------------------------------------------------

// Blocks that the recorder does not know: allocated before it began, or while their thread was in it.
static ULong n_unrecorded;

static Bool keeps_freed; // free() only records

// A call of malloc or its kin, with its arguments and results.
typedef struct {
    const HChar *api;
    void *old;      // of realloc and free
    void *p;        // the result
    SizeT bytes;    // requested
    Block block;    // of `old`
    ULong overhead; // of `old`
    Bool is_known;  // `block` is valid
} Call;

static void failed(const Call *c)
{
    if ((SSizeT)c->bytes < 0)
        jm_heap_refused();
    else
        jm_heap_ran_out(host_thread(), c->api, c->bytes);
}

static void allocated(void *job)
{
    const Call *c = job;
    if (LIKELY(c->p != NULL))
        jm_heap_allocated(host_thread(), (Addr)c->p, (Block){.bytes = c->bytes});
    else
        failed(c);
}

static Bool is_missed(void)
{
    if (jm_native_began_late())
        return True;
    if (!n_unrecorded)
        return False;
    n_unrecorded--;
    return True;
}

static void freed(void *job)
{
    Call *c = job;
    if (UNLIKELY(jm_python_begins_to_end())) // it calls Py_FinalizeEx itself
        jm_cuda_program_ends(host_thread());
    c->is_known = jm_blocks_take((Addr)c->old, False, &c->block);
    if (c->is_known)
        jm_heap_freed(host_thread(), (Addr)c->old, &c->block);
    else if (!is_missed())
        jm_heap_unknown_free((Addr)c->old);
}

static void unmapped(void *job)
{
    const Call *c = job;
    jm_native_heap_unmapped((Addr)c->old);
}

static void before_realloc(void *job)
{
    Call *c = job;
    c->is_known = jm_blocks_take((Addr)c->old, False, &c->block);
    if (c->is_known)
        c->overhead = jm_heap_overhead((Addr)c->old, &c->block);
    else if (!is_missed())
        jm_heap_unknown_realloc();
}

static void after_realloc(void *job)
{
    const Call *c = job;
    if (c->p) {
        jm_heap_moved(host_thread(), (Addr)c->old, &c->block, c->overhead, (Addr)c->p, (Block){.bytes = c->bytes});
        if (c->p != c->old)
            jm_native_heap_unmapped((Addr)c->old);
    } else {
        jm_blocks_add((Addr)c->old, c->block, &(Block){0});
        failed(c);
    }
}

// In the hook's own frame, for its registers.
static inline __attribute__((always_inline)) void *recorded(void *p, SizeT bytes, const HChar *api)
{
    if (jm_options.heap && !NATIVE_RECORD(allocated, &((Call){.api = api, .p = p, .bytes = bytes})) &&
        jm_native_state != NATIVE_IS_OFF)
        n_unrecorded += p != NULL;
    return p;
}

// ---- hooks ---------------------------------------------------------------------------------------------------

NATIVE_EXPORT void *malloc(SizeT bytes)
{
    prepare();
    return recorded(real.malloc(bytes), bytes, "malloc");
}

NATIVE_EXPORT void *calloc(SizeT n, SizeT each)
{
    prepare();
    void *p = real.calloc(n, each);
    SizeT bytes;
    if (UNLIKELY(__builtin_mul_overflow(n, each, &bytes)))
        bytes = ~(SizeT)0;
    return recorded(p, bytes, "calloc");
}

#define LARGE_BLOCK ((SizeT)64 << 10) // smaller ones are never in a mapping of their own

NATIVE_EXPORT void free(void *p)
{
    if (!p)
        return;
    prepare();
    if (!jm_options.heap) {
        real.free(p);
        return;
    }
    jm_blocks_prefetch((Addr)p); // without the lock: it may fetch a table that another thread replaces
    Call c = {.old = p};
    if (UNLIKELY(!NATIVE_RECORD(freed, &c) && keeps_freed)) {
        freed(&c);
        return;
    }
    real.free(p);
    if (UNLIKELY(c.is_known && c.block.bytes >= LARGE_BLOCK))
        NATIVE_RECORD(unmapped, &c);
}

NATIVE_EXPORT void *realloc(void *p, SizeT bytes)
{
    prepare();
    if (!p || !jm_options.heap)
        return recorded(real.realloc(p, bytes), bytes, "realloc");
    Call c = {.api = "realloc", .old = p, .bytes = bytes};
    if (bytes == 0) {
        NATIVE_RECORD(freed, &c);
        void *q = real.realloc(p, 0);
        return q ? recorded(q, 0, "realloc") : NULL;
    }
    NATIVE_RECORD(before_realloc, &c);
    c.p = real.realloc(p, bytes);
    if (c.is_known) {
        NATIVE_RECORD(after_realloc, &c);
    } else {
        recorded(c.p, bytes, "realloc");
    }
    return c.p;
}

NATIVE_EXPORT void *reallocarray(void *p, SizeT n, SizeT each)
{
    SizeT bytes;
    if (__builtin_mul_overflow(n, each, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(p, bytes);
}

#define MAX_ALIGNMENT ((SizeT)1 << 40) // no allocator has such a block

// Bytes that the caller of an aligned operator new wants, in its call of one of these; else what it asks for.
static SizeT wanted(SizeT align, SizeT bytes)
{
    NativeThread *t = jm_native_thread;
    SizeT by_new = t ? t->bytes_of_new : 0;
    if (by_new)
        t->bytes_of_new = 0;
    return align > MAX_ALIGNMENT ? ~(SizeT)0 : by_new ? by_new : bytes;
}

NATIVE_EXPORT void *memalign(SizeT align, SizeT bytes)
{
    prepare();
    return recorded(real.memalign(align, bytes), wanted(align, bytes), "memalign");
}

NATIVE_EXPORT void *aligned_alloc(SizeT align, SizeT bytes)
{
    prepare();
    return recorded(real.aligned_alloc(align, bytes), wanted(align, bytes), "memalign");
}

NATIVE_EXPORT Int posix_memalign(void **place, SizeT align, SizeT bytes)
{
    prepare();
    Int error = real.posix_memalign(place, align, bytes);
    if (error != EINVAL)
        recorded(error ? NULL : *place, wanted(align, bytes), "memalign");
    return error;
}

NATIVE_EXPORT void *valloc(SizeT bytes)
{
    prepare();
    return recorded(real.valloc(bytes), bytes, "memalign");
}

NATIVE_EXPORT void *pvalloc(SizeT bytes)
{
    prepare();
    return recorded(real.pvalloc(bytes), HOST_PAGE_UP(bytes ? bytes : 1), "pvalloc");
}

// ---- operator new and delete -----------------------------------------------------------------------------------

// Where the C++ library's own are called: nothing of this is left on the stack. `align` and `nothrow` take the places
// of each other where one is missing. An exception may pass through these.
typedef void *New(SizeT bytes, UWord align, UWord nothrow);
typedef void Delete(void *p, UWord bytes, UWord align);

// An aligned one rounds its size up, so what it was asked for is told to the hook of what it calls.
static void tell_wanted(SizeT bytes)
{
    if (jm_native_thread)
        jm_native_thread->bytes_of_new = bytes;
}

// Finds the function, and the way of a call: `recorded` where its object has a malloc too, which it then does not call.
static __attribute__((noinline)) Addr find_way(const HChar *symbol, Addr *original, Addr recorded)
{
    prepare();
    *original = jm_native_next(symbol);
    return jm_native_next_is_with(symbol, "malloc") ? recorded : *original;
}

#define NEW(name, symbol, tell)                                                                                        \
    static New *original_##name, *way_##name;                                                                          \
    static void *recorded_##name(SizeT bytes, UWord align, UWord nothrow)                                              \
    {                                                                                                                  \
        return recorded(original_##name(bytes, align, nothrow), bytes, "malloc");                                      \
    }                                                                                                                  \
    __attribute__((visibility("default"))) void *name(SizeT bytes, UWord align, UWord nothrow) __asm__(symbol);        \
    void *name(SizeT bytes, UWord align, UWord nothrow)                                                                \
    {                                                                                                                  \
        if (UNLIKELY(!way_##name))                                                                                     \
            *(Addr *)&way_##name = find_way(symbol, (Addr *)&original_##name, (Addr)recorded_##name);                  \
        tell;                                                                                                          \
        return way_##name(bytes, align, nothrow);                                                                      \
    }
NEW(new_, "_Znwm", )
NEW(new_array, "_Znam", )
NEW(new_nothrow, "_ZnwmRKSt9nothrow_t", )
NEW(new_array_nothrow, "_ZnamRKSt9nothrow_t", )
NEW(new_aligned, "_ZnwmSt11align_val_t", tell_wanted(bytes))
NEW(new_array_aligned, "_ZnamSt11align_val_t", tell_wanted(bytes))
NEW(new_aligned_nothrow, "_ZnwmSt11align_val_tRKSt9nothrow_t", tell_wanted(bytes))
NEW(new_array_aligned_nothrow, "_ZnamSt11align_val_tRKSt9nothrow_t", tell_wanted(bytes))

#define DELETE(name, symbol)                                                                                           \
    static Delete *original_##name, *way_##name;                                                                       \
    static void recorded_##name(void *p, UWord bytes, UWord align)                                                     \
    {                                                                                                                  \
        if (p && jm_options.heap)                                                                                      \
            NATIVE_RECORD(freed, &((Call){.old = p}));                                                                 \
        original_##name(p, bytes, align);                                                                              \
    }                                                                                                                  \
    __attribute__((visibility("default"))) void name(void *p, UWord bytes, UWord align) __asm__(symbol);               \
    void name(void *p, UWord bytes, UWord align)                                                                       \
    {                                                                                                                  \
        if (UNLIKELY(!way_##name))                                                                                     \
            *(Addr *)&way_##name = find_way(symbol, (Addr *)&original_##name, (Addr)recorded_##name);                  \
        way_##name(p, bytes, align);                                                                                   \
    }
DELETE(delete_, "_ZdlPv")
DELETE(delete_array, "_ZdaPv")
DELETE(delete_sized, "_ZdlPvm")
DELETE(delete_array_sized, "_ZdaPvm")
DELETE(delete_nothrow, "_ZdlPvRKSt9nothrow_t")
DELETE(delete_array_nothrow, "_ZdaPvRKSt9nothrow_t")
DELETE(delete_aligned, "_ZdlPvSt11align_val_t")
DELETE(delete_array_aligned, "_ZdaPvSt11align_val_t")
DELETE(delete_sized_aligned, "_ZdlPvmSt11align_val_t")
DELETE(delete_array_sized_aligned, "_ZdaPvmSt11align_val_t")
DELETE(delete_aligned_nothrow, "_ZdlPvSt11align_val_tRKSt9nothrow_t")
DELETE(delete_array_aligned_nothrow, "_ZdaPvSt11align_val_tRKSt9nothrow_t")

// ---- without the heap ------------------------------------------------------------------------------------------

static Bool is_hook(const HChar *name)
{
    Bool is_one = strncmp(name, "_Zn", 3) == 0 || strncmp(name, "_Zd", 3) == 0 || jm_text_equal(name, "reallocarray");
    for (UInt i = 0; i < sizeof originals / sizeof *originals; i++)
        is_one |= jm_text_equal(name, originals[i].name);
    return is_one;
}

void jm_native_pass_heap_by(void)
{
    jm_withdraw_own(is_hook);
}

// ---- the end ---------------------------------------------------------------------------------------------------

// Parts of the C library's streams (struct _IO_FILE of libio.h), which programs may not use.
typedef struct Stream {
    Int flags;
    HChar *read[3], *write[3], *buffer, *buffer_end, *saved[3];
    void *markers;
    struct Stream *next;
} Stream;

extern Stream *_IO_list_all __attribute__((weak));
#define HAS_OTHERS_BUFFER 1 // flag: not to be freed

// Blocks that the C and C++ libraries hold until the end are no leaks of the program's: record them as freed. They are
// not, as other threads may still run.
void jm_native_end_library_blocks(void)
{
    Stream *s = &_IO_list_all ? _IO_list_all : NULL;
    for (; s && host_is_readable((Addr)s, sizeof *s); s = s->next) {
        Call c = {.old = s->buffer};
        Block block;
        if (!(s->flags & HAS_OTHERS_BUFFER) && c.old && jm_blocks_find((Addr)c.old, &block))
            freed(&c);
    }
    void (*end_of_exceptions)(void);
    *(Addr *)&end_of_exceptions = jm_native_next("_ZN9__gnu_cxx9__freeresEv");
    keeps_freed = True;
    if (end_of_exceptions)
        end_of_exceptions();
    keeps_freed = False;
}
