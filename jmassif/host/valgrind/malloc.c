// SPDX-License-Identifier: GPL-2.0-or-later
//
// The program's malloc: small blocks from slabs, others from the core's allocator.
//
// A realloc that shrinks a block frees memory, as the C library's does and massif's does not: a small block moves to a
// smaller size class, and the core's allocator splits a larger one. A block takes a multiple of 16 bytes, as with
// massif.

#include "host/valgrind/malloc.h"
#include "base/libc.h"
#include "heap/heap.h"
#include "heap/slab.h"
#include "host/host.h"

// Larger alignments make the core's allocator end the run (VG_(arena_memalign)), so they are refused.
#define MAX_ALIGNMENT ((SizeT)16 << 20)

SizeT host_heap_usable(Addr address, SizeT bytes, Bool is_small)
{
    return is_small ? JM_ROUND_UP(bytes, JM_SLAB_ALIGN) : VG_(cli_malloc_usable_size)((void *)address);
}

// Returns NULL when out of memory. Fills in `*block`.
static inline __attribute__((always_inline)) void *take_memory(SizeT align, SizeT bytes, Block *block)
{
    void *p = align <= JM_SLAB_ALIGN ? jm_slab_alloc(bytes) : NULL;
    *block = (Block){.bytes = bytes, .is_small = p != NULL};
    return p ? p : VG_(cli_malloc)(align, bytes);
}

// Frees the memory and forgets the block.
static inline __attribute__((always_inline)) void give_back_memory(void *p)
{
    if (jm_slab_free((Addr)p))
        return;
    jm_blocks_take((Addr)p, False, &(Block){0});
    VG_(cli_free)(p);
}

// Finds a block that malloc or a variant has returned.
static Bool find_own(void *p, Block *block)
{
    return jm_blocks_find((Addr)p, block) && !block->is_custom;
}

// A failure is not recorded if `api` is NULL.
static void *allocate(ThreadId tid, const HChar *api, SizeT bytes, SizeT align, Bool zeroed)
{
    // A size with its top bit set is a negative number; the C library refuses it too.
    if ((SSizeT)bytes < 0 || align > MAX_ALIGNMENT) {
        if (api)
            jm_heap_refused();
        return NULL;
    }
    Block block;
    void *p = take_memory(align, bytes, &block);
    if (!p) {
        if (api)
            jm_heap_ran_out(tid, api, bytes);
        return NULL;
    }
    if (zeroed)
        memset(p, 0, bytes);
    jm_heap_allocated(tid, (Addr)p, block);
    return p;
}

static void on_free(ThreadId tid, void *p)
{
    Block block;
    if (!p)
        return;
    if (!find_own(p, &block)) {
        jm_heap_unknown_free((Addr)p);
        return;
    }
    jm_heap_freed(tid, (Addr)p, &block);
    give_back_memory(p);
}

static void *on_malloc(ThreadId tid, SizeT n)
{
    return allocate(tid, "malloc", n, VG_(clo_alignment), False);
}

static void *on_new(ThreadId tid, SizeT n)
{
    return allocate(tid, "operator new", n, VG_(clo_alignment), False);
}

void *jm_malloc_calloc(ThreadId tid, SizeT n, SizeT each)
{
    if (each && n > ~(SizeT)0 / each) {
        jm_heap_refused();
        return NULL;
    }
    return allocate(tid, "calloc", n * each, VG_(clo_alignment), True);
}

// Shrinks a block in place, as the C library does; the rest becomes free memory. libcoregrind exports it in every
// release since 3.10, but no public header declares it.
extern void VG_(arena_realloc_shrink)(Int arena, void *p, SizeT bytes);

#define CLIENT_ARENA 2 // VG_AR_CLIENT of pub_core_mallocfree.h, the same since 3.8

// False if the block is too small.
static Bool resize_in_place(Addr p, const Block *block, SizeT bytes)
{
    if (block->is_small)
        return jm_slab_resize(p, bytes);
    SizeT usable = host_heap_usable(p, block->bytes, block->is_small);
    if (bytes > usable)
        return False;
    // The core unmaps whole pages of the largest blocks, and asserts that it has no translated code there.
    Mapping heap;
    if (bytes < block->bytes && host_mapping_at(p, &heap) && !heap.has_code && p + usable <= heap.end)
        VG_(arena_realloc_shrink)(CLIENT_ARENA, (void *)p, bytes);
    return True;
}

static void *on_realloc(ThreadId tid, void *p, SizeT bytes)
{
    Block block;
    if (!p)
        return on_malloc(tid, bytes);
    if (!find_own(p, &block)) {
        jm_heap_unknown_realloc();
        return NULL;
    }
    // As in the C library. Older cores call free themselves.
    if (bytes == 0) {
        on_free(tid, p);
        return NULL;
    }
    if ((SSizeT)bytes < 0) {
        jm_heap_refused();
        return NULL;
    }
    ULong old_overhead = jm_heap_overhead((Addr)p, &block);
    SizeT old_usable = host_heap_usable((Addr)p, block.bytes, block.is_small);
    Bool saves = bytes < block.bytes && jm_slab_saves(block.bytes, bytes);
    Block now = {.bytes = bytes, .is_small = block.is_small};
    void *to = saves ? take_memory(VG_(clo_alignment), bytes, &now) : NULL;
    if (!to && resize_in_place((Addr)p, &block, bytes))
        to = p;
    if (!to && !(to = take_memory(VG_(clo_alignment), bytes, &now))) {
        jm_heap_ran_out(tid, "realloc", bytes);
        return NULL; // the old block stays valid
    }
    // Copy all usable bytes: programs write to all that malloc_usable_size promises.
    if (to != p)
        memcpy(to, p, bytes < old_usable ? bytes : old_usable);
    if (to != p)
        give_back_memory(p);
    else
        jm_blocks_take((Addr)p, False, &(Block){0});
    jm_heap_moved(tid, (Addr)p, &block, old_overhead, (Addr)to, now);
    return to;
}

static SizeT on_usable_size(ThreadId tid, void *p)
{
    Block block;
    return find_own(p, &block) ? host_heap_usable((Addr)p, block.bytes, block.is_small) : 0;
}

#if defined(HAVE_VG_MEMALIGN_ORIG_ALIGN)
#define ORIG_ALIGN , SizeT orig_align
#else
#define ORIG_ALIGN
#endif

static void *on_memalign(ThreadId tid, SizeT align ORIG_ALIGN, SizeT n)
{
    return allocate(tid, "memalign", n, align, False);
}

#if defined(HAVE_VG_MEMALIGN_ORIG_ALIGN) || defined(HAVE_VG_ALIGNED_NEW)
static void *on_new_aligned(ThreadId tid, SizeT n, SizeT align ORIG_ALIGN)
{
    return allocate(tid, "operator new", n, align, False);
}

static void on_delete_aligned(ThreadId tid, void *p, SizeT align)
{
    on_free(tid, p);
}
#endif

void *jm_malloc_pvalloc(ThreadId tid, SizeT bytes)
{
    SizeT whole = HOST_PAGE_UP(bytes ? bytes : 1);
    return allocate(tid, "pvalloc", whole < bytes ? bytes : whole, HOST_PAGE_BYTES, False);
}

void *jm_malloc_new(ThreadId tid, SizeT bytes, SizeT align)
{
    return allocate(tid, NULL, bytes, align > VG_(clo_alignment) ? align : VG_(clo_alignment), False);
}

void jm_malloc_init(void)
{
    jm_slab_init();
#if defined(HAVE_VG_MEMALIGN_ORIG_ALIGN) || defined(HAVE_VG_ALIGNED_NEW)
    VG_(needs_malloc_replacement)
    (on_malloc, on_new, on_new_aligned, on_new, on_new_aligned, on_memalign, jm_malloc_calloc, on_free, on_free,
     on_delete_aligned, on_free, on_delete_aligned, on_realloc, on_usable_size, 0);
#else
    VG_(needs_malloc_replacement)
    (on_malloc, on_new, on_new, on_memalign, jm_malloc_calloc, on_free, on_free, on_free, on_realloc, on_usable_size,
     0);
#endif
}
