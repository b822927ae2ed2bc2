// SPDX-License-Identifier: GPL-2.0-or-later
//
// Device blocks and their mappings; see blocks.h. A block is found by its handle in the table of its space, and
// by an address inside it in one sorted array of ranges. Its bytes are carved out of driver memory (driver/memory.h)
// where that is known, so that the two together are the memory that the kernel has committed.

#include "device/blocks.h"
#include "base/array.h"
#include "base/client_memory.h"
#include "base/clock.h"
#include "base/hooks.h"
#include "calls/scope.h"
#include "events/snapshot.h"
#include "host/host.h"
#include "ledger/account.h"
#include "ledger/block.h"
#include "ledger/live_tensors.h"
#include "trace/trace.h"

#define TABLE JM_MAP("jm.device_blocks")
static Map tables[N_SPACES] = {TABLE, TABLE, TABLE, TABLE};
static ULong n_stale;

DeviceBlock *jm_device_block_find(Space space, UWord key)
{
    return jm_map_find(&tables[space], key);
}

// ---- blocks by address ---------------------------------------------------------------------------------------

// Address range of a pointer block or a mapping of cuMemCreate'd memory.
typedef struct {
    Addr start, end;
    DeviceBlock *block;
} BlockRange;

static Array ranges = JM_ARRAY("jm.ranges", BlockRange);
static Bool ranges_overlap; // never reset; for example, the program imports its own memory
static ULong cached_bytes;

Bool jm_device_block_is_segment(const DeviceBlock *b)
{
    return b->account && b->kind != KIND_POOL && jm_ledger_owner(b->account) == JM_OWNER_CACHE;
}

static Bool is_cached(const DeviceBlock *b)
{
    return jm_kind_side(b->kind) == SIDE_DEVICE && jm_device_block_is_segment(b);
}

static inline BlockRange *range_at(Word i)
{
    return jm_array_at(&ranges, i);
}

// Index of the first range that begins behind `address`.
static Word range_behind(Addr address)
{
    return jm_array_behind(&ranges, __builtin_offsetof(BlockRange, start), address);
}

// A block of unknown size gets no range yet.
static void add_range(Addr start, ULong bytes, DeviceBlock *block)
{
    if (!bytes || start + bytes < start)
        return;
    Word i = range_behind(start);
    ranges_overlap |=
        (i > 0 && range_at(i - 1)->end > start) || (i < jm_array_n(&ranges) && range_at(i)->start < start + bytes);
    jm_array_insert(&ranges, i, &(BlockRange){start, start + bytes, block});
}

static void remove_range_at(Word i)
{
    const BlockRange r = *range_at(i);
    jm_hooks.range_ended(r.start, r.end - r.start);
    jm_array_remove(&ranges, i);
    if (r.block->space == SPACE_VMM)
        jm_trace_unmapped(jm_clock_now(), r.start, r.end - r.start);
}

static void remove_range(const DeviceBlock *block)
{
    Word i = range_behind(block->key) - 1;
    while (i >= 0 && range_at(i)->start == block->key && range_at(i)->block != block)
        i--;
    if (i >= 0 && range_at(i)->start == block->key)
        remove_range_at(i);
}

DeviceBlock *jm_device_block_around(Addr address, Addr *end)
{
    for (Word i = range_behind(address); i-- > 0;) {
        if (address < range_at(i)->end) {
            *end = range_at(i)->end;
            return range_at(i)->block;
        }
        if (!ranges_overlap)
            return NULL;
    }
    return NULL;
}

DeviceBlock *jm_device_any_cached(ULong bytes)
{
    for (Word i = 0; i < jm_array_n(&ranges); i++)
        if (is_cached(range_at(i)->block) && range_at(i)->block->bytes - range_at(i)->block->carved >= bytes)
            return range_at(i)->block;
    return NULL;
}

void jm_device_blocks_each(void (*use)(Addr address, ULong bytes, Kind kind))
{
    for (Word i = 0; i < jm_array_n(&ranges); i++)
        use(range_at(i)->start, range_at(i)->end - range_at(i)->start, range_at(i)->block->kind);
}

ULong jm_device_cached_bytes(void)
{
    return cached_bytes;
}

// ---- pools ---------------------------------------------------------------------------------------------------

// Blocks update a pool's use as they come and go, and queries update its reserve. The difference is on one account for
// all pools, with the owner `cache`.

typedef struct {
    UWord pool;     // its handle
    ULong used;     // by blocks of this pool, known or guessed
    ULong reserved; // by the last query
    ULong cached;   // max(0, reserved - used), in the cache account
    ULong made;     // bytes of `cached` that are carved out of driver memory
    Carve *made_of;
    Bool is_destroyed; // lives on until its last block is freed
} Pool;

static Array pools = JM_ARRAY("jm.pools", Pool);

static Pool *pool_of(UWord pool)
{
    return jm_array_find_or_add(&pools, &(Pool){.pool = pool}, sizeof pool);
}

static void update_cache(Pool *p)
{
    if (p->is_destroyed && p->used == 0)
        p->reserved = 0;
    ULong cached = p->reserved > p->used ? p->reserved - p->used : 0;
    if (cached != p->cached) {
        ThreadId tid = host_thread();
        AccountId cache = jm_account_owned(0, KIND_POOL, JM_OWNER_CACHE);
        ULong own = p->cached - p->made + jm_driver_uncarve(tid, &p->made_of, cache);
        p->made = jm_driver_carve(tid, &p->made_of, cache, 0, cached, True);
        jm_ledger_adjust(cache, (Long)(cached - p->made) - (Long)own);
        p->cached = cached;
    }
}

static void change_use(UWord pool, Long bytes)
{
    Pool *p = pool ? pool_of(pool) : NULL;
    if (!p)
        return;
    p->used = bytes < 0 && p->used < (ULong)-bytes ? 0 : p->used + bytes;
    update_cache(p);
}

// A block's pool is often known only after the block was opened. Until then its bytes must leave a pool's cache, or
// they would count twice and raise false peaks. So a new block is assumed to be of the pool that was used last.
static UWord last_pool;

void jm_pool_reserved(UWord pool, ULong reserved_bytes)
{
    Pool *p = pool_of(pool);
    p->reserved = reserved_bytes;
    p->is_destroyed = False; // a new pool may have got the handle
    update_cache(p);
}

void jm_pool_destroyed(UWord pool)
{
    Pool *p = pool_of(pool);
    p->is_destroyed = True;
    if (last_pool == pool)
        last_pool = 0;
    update_cache(p);
}

UWord jm_pool_next_caching(UWord pool)
{
    Bool is_behind = pool == 0;
    for (Word i = 0; i < jm_array_n(&pools); i++) {
        const Pool *p = jm_array_at(&pools, i);
        if (is_behind && p->cached && !p->is_destroyed)
            return p->pool;
        is_behind |= p->pool == pool;
    }
    return 0;
}

// ---- blocks --------------------------------------------------------------------------------------------------

// For ledger/block.h, with the account that it has now.
static MemoryBlock as_memory(const DeviceBlock *b, AccountId account)
{
    return (MemoryBlock){.address = b->key,
                         .bytes = b->bytes,
                         .backed = b->made,
                         .account = account,
                         .kind = b->kind,
                         .is_traced = True,
                         .is_handle = b->space != SPACE_POINTER};
}

DeviceBlock *jm_device_block_open(ThreadId tid, Space space, UWord key, Kind kind, ULong bytes)
{
    DeviceBlock *stale = jm_device_block_find(space, key);
    if (stale) {
        n_stale++;
        jm_device_block_close(tid, stale);
    }
    DeviceBlock *b = host_alloc_zeroed("jm.device_blocks", 1, sizeof *b);
    b->key = key;
    b->space = space;
    b->kind = kind;
    b->bytes = bytes;
    b->account = jm_block_account(tid, kind);
    b->n_handles = 1;
    if (space == SPACE_POINTER)
        add_range(key, bytes, b);
    if (is_cached(b))
        cached_bytes += bytes;
    jm_map_add(&tables[space], b);
    if (kind == KIND_POOL)
        change_use(b->pool = last_pool, bytes);
    // Managed memory gets pages when touched, and pinned memory may be the program's own pages, so both are carved only
    // where an address matches.
    Bool is_anywhere = kind != KIND_PINNED && kind != KIND_MANAGED;
    b->made = jm_driver_carve(tid, &b->made_of, b->account, space == SPACE_POINTER ? key : 0, bytes, is_anywhere);
    MemoryBlock memory = as_memory(b, b->account);
    jm_block_born(tid, &memory);
    b->born = jm_ledger_n_changes();
    jm_scope_mark(tid, SCOPE_MADE(kind));
    jm_snapshot_event();
    jm_snapshot_look();
    return b;
}

void jm_device_block_become_segment(DeviceBlock *b)
{
    if (!b->account || b->kind == KIND_POOL || jm_device_block_is_segment(b))
        return;
    MemoryBlock memory = as_memory(b, jm_live_tensor_forget(b->key, b->account));
    AccountId cache = jm_account_owned(jm_ledger_key(b->account).node, b->kind, JM_OWNER_CACHE);
    jm_ledger_move(memory.account, cache, b->bytes, b->born);
    jm_block_taken_back(&memory);
    memory.account = b->account = cache;
    jm_block_handed_out(&memory, jm_clock_now());
    if (is_cached(b))
        cached_bytes += b->bytes;
}

void jm_device_block_close(ThreadId tid, DeviceBlock *b)
{
    AccountId account = b->space == SPACE_POINTER ? jm_live_tensor_end(tid, b->key, b->account) : b->account;
    jm_map_remove(&tables[b->space], b->key);
    jm_scope_mark(tid, SCOPE_FREED);
    if (b->space == SPACE_POINTER)
        remove_range(b);
    // Memory that ends while mapped (fork): no address leads to it any more.
    for (Word i = jm_array_n(&ranges) - 1; b->n_mappings && i >= 0; i--)
        if (range_at(i)->block == b)
            remove_range_at(i);
    if (b->carved)
        jm_hooks.segment_ended(b);
    if (is_cached(b))
        cached_bytes -= b->bytes;
    b->made -= jm_driver_uncarve(tid, &b->made_of, account); // the rest goes back
    MemoryBlock memory = as_memory(b, account);
    jm_block_died(tid, &memory);
    change_use(b->pool, -(Long)b->bytes);
    host_free(b);
    jm_snapshot_event();
}

void jm_device_block_grow(ThreadId tid, DeviceBlock *block, ULong bytes)
{
    if (bytes <= block->bytes || bytes >= JM_ADDRESS_SPACE || !block->account)
        return;
    ULong more = bytes - block->bytes;
    AccountId account = jm_live_tensor_account(block->key, block->account);
    ULong made = jm_driver_carve(tid, &block->made_of, account, block->key, more, True);
    jm_ledger_adjust(account, more - made);
    block->made += made;
    jm_scope_grow(tid, block->kind, more, 0);
    if (is_cached(block))
        cached_bytes += more;
    if (block->space == SPACE_POINTER) {
        remove_range(block);
        add_range(block->key, bytes, block);
    }
    block->bytes = bytes;
}

void jm_device_block_set_pool(DeviceBlock *block, UWord pool)
{
    if (block->pool != pool) {
        change_use(block->pool, -(Long)block->bytes);
        pool_of(pool)->used += block->bytes;
    }
    last_pool = block->pool = pool;
}

void jm_device_blocks_close_context(ThreadId tid, UWord context)
{
    for (Space space = 0; space < N_SPACES; space++) {
        for (DeviceBlock *b = jm_map_next(&tables[space], NULL), *next; b; b = next) {
            next = jm_map_next(&tables[space], b);
            if (b->context == context && b->kind != KIND_POOL && space != SPACE_VMM)
                jm_device_block_close(tid, b);
        }
    }
}

// ---- mappings, reserves, fork --------------------------------------------------------------------------------

void jm_device_map(ThreadId tid, Addr address, ULong bytes, UWord handle)
{
    DeviceBlock *b = jm_device_block_find(SPACE_VMM, handle);
    if (!b)
        return;
    b->n_mappings++;
    add_range(address, bytes, b);
    jm_trace_mapped(jm_clock_now(), address, bytes, b->key);
    if (b->kind == KIND_IMPORTED)
        jm_device_block_grow(tid, b, bytes);
}

void jm_device_unmap(ThreadId tid, Addr address, ULong bytes)
{
    for (Word i = range_behind(address + bytes - 1) - 1; i >= 0 && range_at(i)->start >= address; i--) {
        DeviceBlock *b = range_at(i)->block;
        if (b->space != SPACE_VMM || range_at(i)->end > address + bytes)
            continue;
        remove_range_at(i);
        b->n_mappings--;
        jm_device_block_release_if_unused(tid, b);
    }
}

void jm_device_block_release_if_unused(ThreadId tid, DeviceBlock *block)
{
    if (block->n_handles == 0 && block->n_mappings == 0)
        jm_device_block_close(tid, block);
}

void jm_device_tell_reserves(UInt event)
{
    static const HChar *const names[] = {"pool-used", "pool-reserved", "vmm-created", "vmm-mapped"};
    ULong bytes[4] = {0};
    for (Word i = 0; i < jm_array_n(&pools); i++) {
        bytes[0] += ((Pool *)jm_array_at(&pools, i))->used;
        bytes[1] += ((Pool *)jm_array_at(&pools, i))->reserved;
    }
    for (DeviceBlock *b = NULL; (b = jm_map_next(&tables[SPACE_VMM], b));)
        bytes[2] += b->kind == KIND_VMM ? b->bytes : 0;
    for (Word i = 0; i < jm_array_n(&ranges); i++)
        bytes[3] += range_at(i)->block->space == SPACE_VMM ? range_at(i)->end - range_at(i)->start : 0;
    for (UInt i = 0; i < 4; i++)
        if (bytes[i])
            jm_trace_exhaustion_figure(event, names[i], bytes[i]);
}

void jm_device_blocks_after_fork_in_child(void)
{
    for (Space space = 0; space < N_SPACES; space++) {
        for (DeviceBlock *b = jm_map_next(&tables[space], NULL), *next; b; b = next) {
            next = jm_map_next(&tables[space], b);
            if (b->kind != KIND_PINNED || b->made)
                jm_device_block_close(host_thread(), b);
        }
    }
    for (Word i = 0; i < jm_array_n(&pools); i++) {
        Pool *p = jm_array_at(&pools, i);
        p->used = p->reserved = 0;
        update_cache(p);
    }
}

ULong jm_device_blocks_n_stale(void)
{
    return n_stale;
}
