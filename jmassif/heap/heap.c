// SPDX-License-Identifier: GPL-2.0-or-later
//
// Records heap memory. A block's requested bytes go to the account of its stack; the allocator's overhead (rounding,
// and the header that --heap-admin assumes) goes to one account per owner.
//
// A realloc that shrinks a block frees memory, as the C library's does and massif's does not: a small block moves to a
// smaller size class, and the core's allocator splits a larger one. A block takes a multiple of 16 bytes, as with
// massif.

#include "heap/heap.h"
#include "ledger/account.h"
#include "heap/blocks.h"
#include "base/client_memory.h"
#include "base/clock.h"
#include "events/exhaustion.h"
#include "base/options.h"
#include "base/per_thread.h"
#include "tensors/pending.h"
#include "calls/scope.h"
#include "heap/slab.h"
#include "events/snapshot.h"
#include "base/stats.h"
#include "trace/trace.h"

// The thread's last allocation; 0 once it was freed.
static PerThread last_allocated = JM_PER_THREAD("jm.heap", Addr, NULL);

static struct {
    ULong failed;
    ULong free_unknown;
    ULong realloc_unknown;
    ULong absurd; // announced blocks of an implausible size or address
} counters;

// ---- block records of large blocks ---------------------------------------------------------------------------

// With more heap block records than this per second the threshold doubles: a program that churns through megabyte
// buffers must not fill the disk.
#define MAX_RECORDS_PER_SECOND 2000

static ULong window_start_ms;
static UInt window_records;

static Bool wants_record(SizeT bytes)
{
    if (bytes < jm_options.large_bytes)
        return False;
    // --large=0 asks for a record of every block.
    if (jm_options.large_bytes == 0)
        return True;
    if (++window_records > MAX_RECORDS_PER_SECOND) {
        ULong now = jm_clock_ms();
        if (now - window_start_ms < 1000) {
            jm_options.large_bytes *= 2;
            jm_trace_large_threshold(jm_clock_now(), jm_options.large_bytes);
        }
        window_start_ms = now;
        window_records = 0;
    }
    return bytes >= jm_options.large_bytes;
}

// ---- blocks with large alignments ----------------------------------------------------------------------------

// Larger alignments make the core's allocator end the run (VG_(arena_memalign)).
#define MAX_ALIGNMENT ((SizeT)16 << 20)

// A block with a larger alignment, which is rare, lies somewhere inside a larger block.
typedef struct {
    Addr address;
    void *memory;
    SizeT usable;
} FarAligned;

static XArray *far_aligned;

// Returns -1 if the block is not far aligned.
static inline Word far_aligned_at(Addr address)
{
    if (!far_aligned || address % (2 * MAX_ALIGNMENT) != 0)
        return -1;
    for (Word i = VG_(sizeXA)(far_aligned) - 1; i >= 0; i--)
        if (((FarAligned *)VG_(indexXA)(far_aligned, i))->address == address)
            return i;
    return -1;
}

static __attribute__((noinline)) void *take_far_aligned(SizeT align, SizeT bytes)
{
    SizeT usable = VG_ROUNDUP(bytes, JM_SLAB_ALIGN);
    void *memory = (SSizeT)(usable + align) < 0 ? NULL : VG_(cli_malloc)(MAX_ALIGNMENT, usable + align);
    if (!memory)
        return NULL;
    if (!far_aligned)
        far_aligned = VG_(newXA)(VG_(malloc), "jm.heap", VG_(free), sizeof(FarAligned));
    FarAligned block = {VG_ROUNDUP((Addr)memory, align), memory, usable};
    VG_(addToXA)(far_aligned, &block);
    return (void *)block.address;
}

// ---- bookkeeping ---------------------------------------------------------------------------------------------

static inline Addr *last_of(ThreadId tid)
{
    return JM_OF_THREAD(&last_allocated, Addr, tid);
}

static inline SizeT usable_bytes(Addr address, const Block *block)
{
    if (block->is_small)
        return VG_ROUNDUP(block->bytes, JM_SLAB_ALIGN);
    Word i = far_aligned_at(address);
    return i < 0 ? VG_(cli_malloc_usable_size)((void *)address) : ((FarAligned *)VG_(indexXA)(far_aligned, i))->usable;
}

static inline ULong overhead_of(Addr address, const Block *block)
{
    // A custom block has no known malloc header, but massif counts one, and so does this.
    return jm_options.heap_admin + (block->is_custom ? 0 : usable_bytes(address, block) - block->bytes);
}

static AccountId account_now(ThreadId tid, Bool *ignored)
{
    NodeId node = jm_scope_capture(tid, ignored);
    return *ignored ? 0 : jm_account(node, KIND_HEAP);
}

static Bool move_block(Addr address, AccountId to)
{
    Block block;
    Bool is_found = jm_blocks_find(address, &block);
    tl_assert(is_found);
    jm_blocks_set_account(address, to);
    return block.has_record;
}

// Call before a live block is freed or resized. Updates `block`: its account may change now.
static inline void settle(ThreadId tid, Addr address, Block *block)
{
    if (jm_account_is_tensor(block->account)) {
        Block now = *block;
        jm_pending_ends(tid, address);
        jm_blocks_find(address, &now);
        block->account = now.account;
    }
}

static void unrecord(ThreadId tid, Addr address, const Block *block, ULong overhead);

// Drops a custom block that was never freed: its address is allocated again, so its end was not announced.
static void forget_stale(ThreadId tid, Addr address)
{
    Block stale;
    if (!jm_blocks_take_custom(address, &stale))
        return;
    jm_pending_forget(address);
    unrecord(tid, address, &stale, jm_options.heap_admin);
}

// Fills in the account of `block`.
static void record(ThreadId tid, Addr address, Block block)
{
    Bool ignored;
    forget_stale(tid, address);
    AccountId account = block.account = account_now(tid, &ignored);
    if (account) {
        jm_ledger_credit_both(account, block.bytes, jm_account_overhead(account), overhead_of(address, &block));
        jm_scope_grow(tid, KIND_HEAP, block.bytes, 1);
        if (wants_record(block.bytes)) {
            block.has_record = True;
            jm_trace_block(jm_clock_now(), address, block.bytes, account);
        }
    }
    jm_blocks_add(address, block);
    if (jm_account_is_tensor(account))
        jm_pending_made(address, block.bytes, account, move_block);
    *last_of(tid) = address;
    jm_snapshot_event();
}

static void unrecord(ThreadId tid, Addr address, const Block *block, ULong overhead)
{
    Addr *last = last_of(tid);
    if (block->account) {
        jm_ledger_debit_both(block->account, block->bytes, jm_account_overhead(block->account), overhead);
        jm_scope_grow(tid, KIND_HEAP, -(Long)block->bytes, -1);
        if (*last == address)
            jm_ledger_count_temporary(block->account);
        if (block->has_record)
            jm_trace_block_end(jm_clock_now(), address, block->account);
    }
    if (*last == address)
        *last = 0;
    jm_snapshot_event();
}

// Records a realloc. `now` has no account yet.
static void rerecord(ThreadId tid, Addr from, const Block *block, ULong old_overhead, Addr to, Block now)
{
    Bool ignored;
    AccountId account = account_now(tid, &ignored);
    AccountId old_account = block->account;
    Bool had_record = block->has_record;
    SizeT bytes = now.bytes;
    now.account = account;
    now.has_record = False;
    ULong new_overhead = overhead_of(to, &now);
    if (to != from)
        forget_stale(tid, to);
    if (old_account && account) {
        AccountId old_extra = jm_account_overhead(old_account), new_extra = jm_account_overhead(account);
        // Shrink first: opposite changes must not look like a peak in between.
        Bool heap_first = bytes < block->bytes;
        if (heap_first)
            jm_ledger_resize(old_account, block->bytes, account, bytes);
        jm_ledger_resize(old_extra, old_overhead, new_extra, new_overhead);
        if (!heap_first)
            jm_ledger_resize(old_account, block->bytes, account, bytes);
    } else if (old_account) {
        jm_ledger_debit_both(old_account, block->bytes, jm_account_overhead(old_account), old_overhead);
    } else if (account) {
        jm_ledger_credit_both(account, bytes, jm_account_overhead(account), new_overhead);
    }
    jm_scope_grow(tid, KIND_HEAP, (Long)(account ? bytes : 0) - (Long)(old_account ? block->bytes : 0),
                  (account ? 1 : 0) - (old_account ? 1 : 0));
    if (had_record)
        jm_trace_block_end(jm_clock_now(), from, old_account);
    if (account && wants_record(bytes)) {
        now.has_record = True;
        jm_trace_block(jm_clock_now(), to, bytes, account);
    }
    jm_blocks_add(to, now);
    if (jm_account_is_tensor(account))
        jm_pending_made(to, bytes, account, move_block);
    *last_of(tid) = to;
    jm_snapshot_event();
}

// ---- malloc and its variants ---------------------------------------------------------------------------------

// Returns NULL when out of memory. Fills in `*block`.
static inline __attribute__((always_inline)) void *take_memory(SizeT align, SizeT bytes, Block *block)
{
    void *p = align <= JM_SLAB_ALIGN ? jm_slab_alloc(bytes) : NULL;
    *block = (Block){.bytes = bytes, .is_small = p != NULL};
    if (UNLIKELY(align > MAX_ALIGNMENT))
        return take_far_aligned(align, bytes);
    return p ? p : VG_(cli_malloc)(align, bytes);
}

// Frees the memory and forgets the block.
static inline __attribute__((always_inline)) void give_back_memory(void *p)
{
    if (jm_slab_free((Addr)p))
        return;
    jm_blocks_remove((Addr)p);
    Word i = far_aligned_at((Addr)p);
    if (UNLIKELY(i >= 0)) {
        p = ((FarAligned *)VG_(indexXA)(far_aligned, i))->memory;
        VG_(removeIndexXA)(far_aligned, i);
    }
    VG_(cli_free)(p);
}

// Finds a block that malloc or a variant has returned.
static Bool find_own(void *p, Block *block)
{
    return jm_blocks_find((Addr)p, block) && !block->is_custom;
}

static void ran_out(ThreadId tid, const HChar *api, SizeT bytes)
{
    counters.failed++;
    jm_exhaustion_failed(tid, api, VKI_ENOMEM, KIND_HEAP, bytes);
}

// A failure is not recorded if `api` is NULL.
static void *allocate(ThreadId tid, const HChar *api, SizeT bytes, SizeT align, Bool zeroed)
{
    // A size with its top bit set is a negative number; the C library refuses it too.
    if ((SSizeT)bytes < 0 || align >= JM_ADDRESS_SPACE) {
        counters.failed += api != NULL;
        return NULL;
    }
    Block block;
    void *p = take_memory(align, bytes, &block);
    if (!p) {
        if (api)
            ran_out(tid, api, bytes);
        return NULL;
    }
    if (zeroed)
        VG_(memset)(p, 0, bytes);
    if (jm_options.heap)
        record(tid, (Addr)p, block);
    else
        jm_blocks_add((Addr)p, block);
    return p;
}

static void release(ThreadId tid, void *p)
{
    Block block;
    if (!p)
        return;
    if (!find_own(p, &block)) {
        if (counters.free_unknown++ == 0 && VG_(clo_verbosity) > 0)
            VG_(umsg)("jmassif: %p is freed, no block of malloc's; such calls go on, and are counted\n", p);
        return;
    }
    settle(tid, (Addr)p, &block);
    unrecord(tid, (Addr)p, &block, block.account ? overhead_of((Addr)p, &block) : 0);
    give_back_memory(p);
}

static void *jm_malloc(ThreadId tid, SizeT n)
{
    return allocate(tid, "malloc", n, VG_(clo_alignment), False);
}

static void *jm_new(ThreadId tid, SizeT n)
{
    return allocate(tid, "operator new", n, VG_(clo_alignment), False);
}

static void *jm_calloc(ThreadId tid, SizeT n, SizeT each)
{
    if (each && n > ~(SizeT)0 / each) {
        counters.failed++;
        return NULL;
    }
    return allocate(tid, "calloc", n * each, VG_(clo_alignment), True);
}

static void jm_free(ThreadId tid, void *p)
{
    release(tid, p);
}

// Shrinks a block in place, as the C library does; the rest becomes free memory. libcoregrind exports it in every
// release since 3.10, but no public header declares it.
extern void VG_(arena_realloc_shrink)(Int arena, void *p, SizeT bytes);

#define CLIENT_ARENA 2 // VG_AR_CLIENT of pub_core_mallocfree.h, the same since 3.8

static void shrink_in_place(Addr p, SizeT from, SizeT to)
{
    // The core unmaps whole pages of the largest blocks, and asserts that it has no translated code there.
    const NSegment *segment = VG_(am_find_nsegment)(p);
    if (segment && !segment->hasT && p + from - 1 <= segment->end)
        VG_(arena_realloc_shrink)(CLIENT_ARENA, (void *)p, to);
}

// False if the block is too small.
static Bool resize_in_place(Addr p, const Block *block, SizeT bytes)
{
    if (block->is_small)
        return jm_slab_resize(p, bytes);
    SizeT usable = usable_bytes(p, block);
    if (bytes > usable)
        return False;
    if (bytes < block->bytes && far_aligned_at(p) < 0)
        shrink_in_place(p, usable, bytes);
    return True;
}

static void *jm_realloc(ThreadId tid, void *p, SizeT bytes)
{
    Block block;
    if (!p)
        return jm_malloc(tid, bytes);
    if (!find_own(p, &block)) {
        counters.realloc_unknown++;
        return NULL;
    }
    // As in the C library. Older cores call free themselves.
    if (bytes == 0) {
        release(tid, p);
        return NULL;
    }
    if ((SSizeT)bytes < 0) {
        counters.failed++;
        return NULL;
    }
    ULong old_overhead = overhead_of((Addr)p, &block);
    SizeT old_usable = usable_bytes((Addr)p, &block);
    Bool saves = bytes < block.bytes && (jm_slab_saves(block.bytes, bytes) || far_aligned_at((Addr)p) >= 0);
    Block now = {.bytes = bytes, .is_small = block.is_small};
    void *to = saves ? take_memory(VG_(clo_alignment), bytes, &now) : NULL;
    if (!to && resize_in_place((Addr)p, &block, bytes))
        to = p;
    if (!to && !(to = take_memory(VG_(clo_alignment), bytes, &now))) {
        ran_out(tid, "realloc", bytes);
        return NULL; // the old block stays valid
    }
    // Copy all usable bytes: programs write to all that malloc_usable_size promises.
    if (to != p)
        VG_(memcpy)(to, p, bytes < old_usable ? bytes : old_usable);
    settle(tid, (Addr)p, &block);
    if (to != p)
        give_back_memory(p);
    else
        jm_blocks_remove((Addr)p);
    if (jm_options.heap)
        rerecord(tid, (Addr)p, &block, old_overhead, (Addr)to, now);
    else
        jm_blocks_add((Addr)to, now);
    return to;
}

static SizeT jm_usable_size(ThreadId tid, void *p)
{
    Block block;
    return find_own(p, &block) ? usable_bytes((Addr)p, &block) : 0;
}

#if defined(HAVE_VG_MEMALIGN_ORIG_ALIGN)
static void *jm_memalign(ThreadId tid, SizeT align, SizeT orig_align, SizeT n)
{
    return allocate(tid, "memalign", n, align, False);
}
#else
static void *jm_memalign(ThreadId tid, SizeT align, SizeT n)
{
    return allocate(tid, "memalign", n, align, False);
}
#endif

#if defined(HAVE_VG_MEMALIGN_ORIG_ALIGN)
static void *jm_new_aligned(ThreadId tid, SizeT n, SizeT align, SizeT orig_align)
{
    return allocate(tid, "operator new", n, align, False);
}
static void jm_delete_aligned(ThreadId tid, void *p, SizeT align)
{
    release(tid, p);
}
#elif defined(HAVE_VG_ALIGNED_NEW)
static void *jm_new_aligned(ThreadId tid, SizeT n, SizeT align)
{
    return allocate(tid, "operator new", n, align, False);
}
static void jm_delete_aligned(ThreadId tid, void *p, SizeT align)
{
    release(tid, p);
}
#endif

// ---- for the preload library ---------------------------------------------------------------------------------

void *jm_heap_calloc(ThreadId tid, SizeT n, SizeT each)
{
    return jm_calloc(tid, n, each);
}

void *jm_heap_pvalloc(ThreadId tid, SizeT bytes)
{
    SizeT whole = VG_PGROUNDUP(bytes ? bytes : 1);
    return allocate(tid, "pvalloc", whole < bytes ? bytes : whole, VKI_PAGE_SIZE, False);
}

void *jm_heap_new(ThreadId tid, SizeT bytes, SizeT align)
{
    return allocate(tid, NULL, bytes, align > VG_(clo_alignment) ? align : VG_(clo_alignment), False);
}

// The core's mallinfo covers its own allocator alone, so the linker redirects calls of it here (--wrap).
typedef struct {
    Int fields[JM_N_MALLINFO_FIELDS];
} CoreMallinfo;

enum { MALLINFO_ARENA = 0, MALLINFO_USED = 7, MALLINFO_FREE = 8 }; // malloc.h: arena, uordblks, fordblks

void __real_vgPlain_mallinfo(ThreadId tid, CoreMallinfo *told);
void __wrap_vgPlain_mallinfo(ThreadId tid, CoreMallinfo *told);

void jm_heap_mallinfo(ThreadId tid, SizeT *fields)
{
    CoreMallinfo core;
    __real_vgPlain_mallinfo(tid, &core);
    for (UInt i = 0; i < JM_N_MALLINFO_FIELDS; i++)
        fields[i] = (UInt)core.fields[i];
    SizeT mapped, used;
    jm_slab_sums(&mapped, &used);
    fields[MALLINFO_ARENA] += mapped;
    fields[MALLINFO_USED] += used;
    fields[MALLINFO_FREE] += mapped - used;
    // In the C library arena is the sum of the others, and programs rely on it; the core leaves out superblock headers.
    if (fields[MALLINFO_ARENA] >= fields[MALLINFO_USED])
        fields[MALLINFO_FREE] = fields[MALLINFO_ARENA] - fields[MALLINFO_USED];
}

void __wrap_vgPlain_mallinfo(ThreadId tid, CoreMallinfo *told)
{
    SizeT fields[JM_N_MALLINFO_FIELDS];
    jm_heap_mallinfo(tid, fields);
    for (UInt i = 0; i < JM_N_MALLINFO_FIELDS; i++)
        told->fields[i] = (Int)fields[i];
}

// ---- registration --------------------------------------------------------------------------------------------

void jm_heap_init(void)
{
    jm_slab_init();
#if defined(HAVE_VG_MEMALIGN_ORIG_ALIGN) || defined(HAVE_VG_ALIGNED_NEW)
    VG_(needs_malloc_replacement)
    (jm_malloc, jm_new, jm_new_aligned, jm_new, jm_new_aligned, jm_memalign, jm_calloc, jm_free, jm_free,
     jm_delete_aligned, jm_free, jm_delete_aligned, jm_realloc, jm_usable_size, 0);
#else
    VG_(needs_malloc_replacement)
    (jm_malloc, jm_new, jm_new, jm_memalign, jm_calloc, jm_free, jm_free, jm_free, jm_realloc, jm_usable_size, 0);
#endif
}

// ---- custom allocators ---------------------------------------------------------------------------------------

// Announced sizes can be any number, but sums must not overflow.
static Bool is_absurd(Addr address, SizeT bytes)
{
    Bool fits = address < JM_ADDRESS_SPACE && bytes < JM_ADDRESS_SPACE &&
                jm_ledger_total(SIDE_HOST) + bytes < JM_ADDRESS_SPACE << 8;
    counters.absurd += !fits;
    return !fits;
}

void jm_heap_malloclike(ThreadId tid, Addr address, SizeT bytes)
{
    Block known;
    if (!jm_options.heap || !address || is_absurd(address, bytes))
        return;
    // A custom block at the start of a malloc block is part of it and not recorded. One announced twice is replaced.
    if (jm_blocks_find(address, &known) && !known.is_custom)
        return;
    record(tid, address, (Block){.bytes = bytes, .is_custom = True});
}

void jm_heap_resize_in_place(ThreadId tid, Addr address, SizeT new_bytes)
{
    Block block;
    if (!jm_options.heap || !jm_blocks_find(address, &block)) {
        counters.realloc_unknown += jm_options.heap;
        return;
    }
    if (!block.is_custom || is_absurd(address, new_bytes))
        return;
    settle(tid, address, &block);
    jm_blocks_remove(address);
    rerecord(tid, address, &block, jm_options.heap_admin, address, (Block){.bytes = new_bytes, .is_custom = True});
}

void jm_heap_freelike(ThreadId tid, Addr address)
{
    Block block;
    if (!jm_options.heap)
        return;
    if (!jm_blocks_find(address, &block)) {
        counters.free_unknown++;
        return;
    }
    if (!block.is_custom)
        return;
    settle(tid, address, &block);
    jm_blocks_remove(address);
    unrecord(tid, address, &block, jm_options.heap_admin);
}

// ---- the rest ------------------------------------------------------------------------------------------------

void jm_heap_write_counters(void)
{
    if (counters.failed)
        jm_trace_counter("heap-allocation-failed", counters.failed);
    if (counters.free_unknown)
        jm_trace_counter("free-of-unknown-pointer", counters.free_unknown);
    if (counters.realloc_unknown)
        jm_trace_counter("realloc-of-unknown-pointer", counters.realloc_unknown);
    if (counters.absurd)
        jm_trace_counter("absurd-block-announced", counters.absurd);
}

void jm_heap_stats(void)
{
    jm_stats_row("jm.heap", "threads", VG_N_THREADS, jm_per_thread_bytes(&last_allocated));
}
