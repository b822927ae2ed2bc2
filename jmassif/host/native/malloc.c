// SPDX-License-Identifier: GPL-2.0-or-later
//
// malloc and its kin. The program's own allocator does the work; what it has done is recorded. operator new and strdup
// call malloc, and are seen there, with their callers.
//
// A free is recorded before the real one, and a realloc's old block is taken out before: in between another thread may
// be given the address.

#include "base/libc.h"
#include "base/options.h"
#include "heap/blocks.h"
#include "heap/heap.h"
#include "host/host.h"
#include "host/native/hook.h"
#include "host/native/mappings.h"
#include "host/native/thread.h"

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

// A block whose end was missed, as it came while the thread was in the recorder.
static void forget_missed(Addr address)
{
    Block stale;
    if (jm_native_n_missed && jm_blocks_find(address, &stale) && !stale.is_custom) {
        jm_heap_freed(host_thread(), address, &stale);
        jm_blocks_remove(address);
    }
}

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
    if (LIKELY(c->p != NULL)) {
        forget_missed((Addr)c->p);
        jm_heap_allocated(host_thread(), (Addr)c->p, (Block){.bytes = c->bytes});
    } else {
        failed(c);
    }
}

static void freed(void *job)
{
    const Call *c = job;
    Block block;
    if (!jm_blocks_find((Addr)c->old, &block) || block.is_custom) {
        if (n_unrecorded)
            n_unrecorded--;
        else
            jm_heap_unknown_free((Addr)c->old);
        return;
    }
    jm_heap_freed(host_thread(), (Addr)c->old, &block);
    jm_blocks_remove((Addr)c->old);
}

static void unmapped(void *job)
{
    const Call *c = job;
    jm_native_heap_unmapped((Addr)c->old);
}

static void before_realloc(void *job)
{
    Call *c = job;
    c->is_known = jm_blocks_find((Addr)c->old, &c->block) && !c->block.is_custom;
    if (!c->is_known)
        return;
    c->overhead = jm_heap_overhead((Addr)c->old, &c->block);
    jm_blocks_remove((Addr)c->old);
}

static void after_realloc(void *job)
{
    const Call *c = job;
    if (c->p) {
        forget_missed((Addr)c->p);
        jm_heap_moved(host_thread(), (Addr)c->old, &c->block, c->overhead, (Addr)c->p, (Block){.bytes = c->bytes});
        if (c->p != c->old)
            jm_native_heap_unmapped((Addr)c->old);
    } else {
        jm_blocks_add((Addr)c->old, c->block);
        failed(c);
    }
}

// In the hook's own frame, for its registers.
static inline __attribute__((always_inline)) void *recorded(void *p, SizeT bytes, const HChar *api)
{
    if (jm_options.heap && !NATIVE_RECORD(allocated, &((Call){.api = api, .p = p, .bytes = bytes})))
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
    Call c = {.old = p, .bytes = real.malloc_usable_size ? real.malloc_usable_size(p) : 0};
    NATIVE_RECORD(freed, &c);
    real.free(p);
    if (UNLIKELY(c.bytes >= LARGE_BLOCK))
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
        n_unrecorded -= c.p && n_unrecorded;
        recorded(c.p, bytes, "realloc");
    }
    return c.p;
}

NATIVE_EXPORT void *reallocarray(void *p, SizeT n, SizeT each)
{
    SizeT bytes;
    if (__builtin_mul_overflow(n, each, &bytes)) {
        errno = ENOMEM;
        return recorded(NULL, ~(SizeT)0, "realloc");
    }
    return realloc(p, bytes);
}

NATIVE_EXPORT void *memalign(SizeT align, SizeT bytes)
{
    prepare();
    return recorded(real.memalign(align, bytes), bytes, "memalign");
}

NATIVE_EXPORT void *aligned_alloc(SizeT align, SizeT bytes)
{
    prepare();
    return recorded(real.aligned_alloc(align, bytes), bytes, "memalign");
}

NATIVE_EXPORT Int posix_memalign(void **place, SizeT align, SizeT bytes)
{
    prepare();
    Int error = real.posix_memalign(place, align, bytes);
    if (error != EINVAL)
        recorded(error ? NULL : *place, bytes, "memalign");
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
