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

#define ALWAYS_INLINE static inline __attribute__((always_inline))

// In the hook's own frame, for its registers.
ALWAYS_INLINE void *recorded(void *p, SizeT bytes, const HChar *api)
{
    if (!NATIVE_BEGIN()) {
        n_unrecorded += p != NULL;
        return p;
    }
    if (LIKELY(p != NULL)) {
        forget_missed((Addr)p);
        jm_heap_allocated(host_thread(), (Addr)p, (Block){.bytes = bytes});
    } else if ((SSizeT)bytes < 0) {
        jm_heap_refused();
    } else {
        jm_heap_ran_out(host_thread(), api, bytes);
    }
    jm_native_end();
    return p;
}

static void ends(void *p)
{
    Block block;
    if (!jm_blocks_find((Addr)p, &block) || block.is_custom) {
        if (n_unrecorded)
            n_unrecorded--;
        else
            jm_heap_unknown_free((Addr)p);
        return;
    }
    jm_heap_freed(host_thread(), (Addr)p, &block);
    jm_blocks_remove((Addr)p);
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
    SizeT usable = real.malloc_usable_size ? real.malloc_usable_size(p) : 0;
    if (NATIVE_BEGIN()) {
        ends(p);
        jm_native_end();
    }
    real.free(p);
    if (UNLIKELY(usable >= LARGE_BLOCK) && NATIVE_BEGIN()) {
        jm_native_heap_unmapped((Addr)p);
        jm_native_end();
    }
}

NATIVE_EXPORT void *realloc(void *p, SizeT bytes)
{
    prepare();
    if (!p)
        return recorded(real.realloc(p, bytes), bytes, "realloc");
    if (bytes == 0) {
        if (NATIVE_BEGIN()) {
            ends(p);
            jm_native_end();
        }
        void *q = real.realloc(p, 0);
        return q ? recorded(q, 0, "realloc") : NULL;
    }
    Block block;
    ULong old_overhead = 0;
    Bool is_known = False;
    if (NATIVE_BEGIN()) {
        is_known = jm_blocks_find((Addr)p, &block) && !block.is_custom;
        if (is_known) {
            old_overhead = jm_heap_overhead((Addr)p, &block);
            jm_blocks_remove((Addr)p);
        }
        jm_native_end();
    }
    void *q = real.realloc(p, bytes);
    if (!is_known) {
        if (q && n_unrecorded)
            n_unrecorded--;
        return recorded(q, bytes, "realloc");
    }
    if (!NATIVE_BEGIN())
        return q;
    if (q) {
        forget_missed((Addr)q);
        jm_heap_moved(host_thread(), (Addr)p, &block, old_overhead, (Addr)q, (Block){.bytes = bytes});
        if (q != p)
            jm_native_heap_unmapped((Addr)p);
    } else {
        jm_blocks_add((Addr)p, block);
        if ((SSizeT)bytes < 0)
            jm_heap_refused();
        else
            jm_heap_ran_out(host_thread(), "realloc", bytes);
    }
    jm_native_end();
    return q;
}

NATIVE_EXPORT void *reallocarray(void *p, SizeT n, SizeT each)
{
    SizeT bytes;
    if (__builtin_mul_overflow(n, each, &bytes)) {
        errno = ENOMEM;
        if (NATIVE_BEGIN()) {
            jm_heap_refused();
            jm_native_end();
        }
        return NULL;
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
