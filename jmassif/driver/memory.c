// SPDX-License-Identifier: GPL-2.0-or-later
//
// Committed memory, the maps that lead to it, and the carves out of it; see memory.h.
//
// A map is a sorted array with binary search: a process has some hundreds of mappings and looks up more often than it
// maps. A new mapping cuts those that it overlaps, as in the kernel.
//
// Carves without an address (a pool's reserve, arrays somewhere in a slab) *float*: when a block with an address needs
// their room, they move to other slack.

#include "driver/memory.h"
#include "base/array.h"
#include "base/list.h"
#include "calls/scope.h"
#include "events/snapshot.h"
#include "host/host.h"
#include "ledger/account.h"
#include "ledger/block.h"
#include "trace/trace.h"

// ---- maps ----------------------------------------------------------------------------------------------------

typedef struct {
    Addr start, end;
    DriverFile *file;
    DriverMemory *memory;
} DriverMapping;

struct DriverMap {
    DriverMap *next;
    Array mappings; // of DriverMapping, sorted by address, without overlaps
};

static DriverMap *maps;

static inline DriverMapping *mapping_at(const DriverMap *map, Word i)
{
    return jm_array_at(&map->mappings, i);
}

DriverMap *jm_driver_map_new(void)
{
    DriverMap *map = host_alloc_zeroed("jm.driver.map", 1, sizeof *map);
    map->mappings = (Array)JM_ARRAY("jm.driver.map", DriverMapping);
    map->next = maps;
    maps = map;
    return map;
}

void jm_driver_map_delete(ThreadId tid, DriverMap *map)
{
    DriverMap **link = &maps;
    while (*link != map)
        link = &(*link)->next;
    *link = map->next;
    for (Word i = 0; i < jm_array_n(&map->mappings); i++)
        if (mapping_at(map, i)->file)
            jm_driver_file_release(tid, mapping_at(map, i)->file);
    host_free(map->mappings.records);
    host_free(map);
}

// Index of the first mapping that ends behind `address`.
static Word first_after(const DriverMap *map, Addr address)
{
    return jm_array_behind(&map->mappings, __builtin_offsetof(DriverMapping, end), address);
}

static void remove_mapping(ThreadId tid, DriverMap *map, Word i)
{
    DriverFile *file = mapping_at(map, i)->file;
    jm_array_remove(&map->mappings, i);
    if (file)
        jm_driver_file_release(tid, file); // last, because it may end the memory, which changes maps
}

// Splits a mapping around the address. Both parts hold the file.
static void part_at(DriverMap *map, Addr address)
{
    Word i = first_after(map, address);
    if (i == jm_array_n(&map->mappings) || mapping_at(map, i)->start >= address)
        return;
    DriverMapping upper = *mapping_at(map, i);
    mapping_at(map, i)->end = upper.start = address;
    if (upper.file)
        jm_driver_file_hold(upper.file);
    jm_array_insert(&map->mappings, i + 1, &upper);
}

void jm_driver_map_remove(ThreadId tid, DriverMap *map, Addr start, ULong bytes)
{
    if (!jm_array_n(&map->mappings))
        return;
    part_at(map, start);
    part_at(map, start + bytes);
    for (Word i = first_after(map, start); i < jm_array_n(&map->mappings) && mapping_at(map, i)->start < start + bytes;)
        remove_mapping(tid, map, i);
}

void jm_driver_map_remove_at(ThreadId tid, DriverMap *map, Addr start)
{
    Word i = first_after(map, start);
    if (i < jm_array_n(&map->mappings) && mapping_at(map, i)->start == start)
        remove_mapping(tid, map, i);
}

void jm_driver_map_add(ThreadId tid, DriverMap *map, Addr start, ULong bytes, DriverFile *file, DriverMemory *memory)
{
    if (!bytes || start + bytes < start)
        return;
    if (file)
        jm_driver_file_hold(file);
    jm_driver_map_remove(tid, map, start, bytes);
    DriverMapping mapping = {start, start + bytes, file, memory};
    jm_array_insert(&map->mappings, first_after(map, start), &mapping);
}

UInt jm_driver_map_count(const DriverMap *map)
{
    return jm_array_n(&map->mappings);
}

Bool jm_driver_map_has(const DriverMap *map, Addr address)
{
    Word i = first_after(map, address);
    return i < jm_array_n(&map->mappings) && mapping_at(map, i)->start <= address;
}

static DriverMemory *find_memory(Addr address, Addr *end)
{
    for (const DriverMap *map = maps; map; map = map->next) {
        Word i = first_after(map, address);
        if (i == jm_array_n(&map->mappings) || mapping_at(map, i)->start > address || !mapping_at(map, i)->memory)
            continue;
        *end = mapping_at(map, i)->end;
        return mapping_at(map, i)->memory;
    }
    return NULL;
}

// ---- memory --------------------------------------------------------------------------------------------------

struct DriverMemory {
    DriverMemory *next, *previous; // list of all live memory, newest first
    AccountId account;             // 0: not recorded
    Kind kind;
    ULong bytes;
    ULong carved;
    UInt n_carves;
    ThreadId tid; // the thread that committed it,
    UInt scope;   // and its API call
    Bool is_slab; // its owner is `slack`
    Bool has_ended;
};

struct Carve {
    Carve *next; // carve of the same block
    DriverMemory *memory;
    ULong bytes;
    AccountId account; // of the block
    Bool is_floating;
};

static DriverMemory *newest;
static Array floating = JM_ARRAY("jm.driver.memory", Carve *);
static ULong n_uncovered; // blocks for which too little memory was found

// For ledger/block.h, without the parts that are carved out of it.
static MemoryBlock as_memory(const DriverMemory *m)
{
    return (MemoryBlock){.bytes = m->bytes - m->carved, .account = m->account, .kind = m->kind, .is_handle = True};
}

DriverMemory *jm_driver_memory_commit(ThreadId tid, Kind kind, ULong bytes)
{
    Bool ignored;
    NodeId node = jm_scope_capture(tid, &ignored);
    OwnerId owner = jm_stack_owner(node, OWNS_DRIVER);
    DriverMemory *m = host_alloc_zeroed("jm.driver.memory", 1, sizeof *m);
    m->account = ignored ? 0 : jm_account_owned(node, kind, owner);
    m->kind = kind;
    m->bytes = bytes;
    m->tid = tid;
    m->scope = jm_scope_current(tid);
    m->is_slab = owner == JM_OWNER_SLACK;
    JM_LIST_ADD(newest, m, next, previous);
    MemoryBlock block = as_memory(m);
    jm_block_born(tid, &block);
    jm_snapshot_event();
    return m;
}

void jm_driver_memory_end(ThreadId tid, DriverMemory *m)
{
    for (DriverMap *map = maps; map; map = map->next) // mappings of memory that has ended remain
        for (Word i = 0; i < jm_array_n(&map->mappings); i++)
            if (mapping_at(map, i)->memory == m)
                mapping_at(map, i)->memory = NULL;
    JM_LIST_REMOVE(newest, m, next, previous);
    MemoryBlock block = as_memory(m);
    jm_block_died(tid, &block);
    m->has_ended = True;
    if (!m->n_carves)
        host_free(m);
    jm_snapshot_event();
}

// ---- carving -------------------------------------------------------------------------------------------------

static inline ULong room_in(const DriverMemory *m)
{
    return m->account && !m->has_ended ? m->bytes - m->carved : 0;
}

static Bool is_import(AccountId account)
{
    return jm_ledger_key(account).kind == KIND_IMPORTED;
}

static Bool can_hold(const DriverMemory *m, AccountId account)
{
    return (m->kind == KIND_IMPORTED) == is_import(account);
}

// Moves up to `bytes` from the account of `m` to that of a block. Returns how many were moved.
static ULong carve(ThreadId tid, Carve **carves, AccountId account, DriverMemory *m, ULong bytes, Bool is_floating)
{
    bytes = jm_smaller(bytes, room_in(m));
    if (!bytes)
        return 0;
    Carve *c = host_alloc_zeroed("jm.driver.memory", 1, sizeof *c);
    c->memory = m;
    c->bytes = bytes;
    c->is_floating = is_floating;
    c->account = account;
    c->next = *carves;
    *carves = c;
    m->carved += bytes;
    m->n_carves++;
    jm_ledger_carve(m->account, account, bytes, True);
    jm_scope_grow(tid, m->kind, -(Long)bytes, 0);
    if (is_floating)
        jm_array_add(&floating, &c);
    return bytes;
}

// Some memory with slack, except `other`.
static DriverMemory *slack_for(AccountId account, const DriverMemory *other)
{
    for (DriverMemory *m = newest; m; m = m->next)
        if (m != other && m->is_slab && room_in(m) && can_hold(m, account))
            return m;
    return NULL;
}

// Moves floating carves out of `m` until it has room for `bytes`.
static void make_room(DriverMemory *m, ULong bytes)
{
    for (Word i = 0; i < jm_array_n(&floating) && room_in(m) < bytes;) {
        Carve *c = *(Carve **)jm_array_at(&floating, i);
        DriverMemory *to = c->memory == m ? slack_for(c->account, m) : NULL;
        if (!to) {
            i++;
            continue;
        }
        ULong moved = jm_smaller(jm_smaller(bytes - room_in(m), c->bytes), room_in(to));
        // Only the accounts of the two memories change; the block's keeps its bytes.
        jm_ledger_carve(to->account, m->account, moved, False);
        m->carved -= moved;
        to->carved += moved;
        if (moved == c->bytes) {
            m->n_carves--;
            to->n_carves++;
            c->memory = to;
            continue;
        }
        Carve *rest = host_alloc_zeroed("jm.driver.memory", 1, sizeof *rest);
        *rest = *c;
        rest->memory = to;
        rest->bytes = moved;
        c->bytes -= moved;
        c->next = rest;
        to->n_carves++;
        jm_array_add(&floating, &rest);
    }
}

static ULong carve_at(ThreadId tid, Carve **carves, AccountId account, Addr address, ULong bytes)
{
    ULong found = 0;
    while (found < bytes) {
        Addr end;
        DriverMemory *m = find_memory(address + found, &end);
        if (!m || !can_hold(m, account))
            break;
        ULong part = jm_smaller(end - (address + found), bytes - found);
        if (room_in(m) < part)
            make_room(m, part);
        ULong taken = carve(tid, carves, account, m, part, False);
        found += taken;
        if (taken < part)
            break;
    }
    return found;
}

static ULong carve_anywhere(ThreadId tid, Carve **carves, AccountId account, ULong bytes)
{
    ULong found = 0;
    UInt scope = jm_scope_current(tid);
    for (DriverMemory *m = newest; m && scope && found < bytes && m->scope >= scope; m = m->next)
        if (m->tid == tid && can_hold(m, account))
            found += carve(tid, carves, account, m, bytes - found, False);
    while (found < bytes) {
        DriverMemory *m = slack_for(account, NULL);
        if (!m)
            break;
        found += carve(tid, carves, account, m, bytes - found, True);
    }
    return found;
}

ULong jm_driver_carve(ThreadId tid, Carve **carves, AccountId account, Addr address, ULong bytes, Bool is_anywhere)
{
    if (!newest || !account || !bytes)
        return 0;
    ULong found = address ? carve_at(tid, carves, account, address, bytes) : 0;
    if (is_anywhere && found < bytes) {
        found += carve_anywhere(tid, carves, account, bytes - found);
        n_uncovered += found < bytes && !is_import(account); // an import may be unknown to the driver
    }
    return found;
}

ULong jm_driver_uncarve(ThreadId tid, Carve **carves, AccountId account)
{
    ULong ended = 0;
    while (*carves) {
        Carve *c = *carves;
        DriverMemory *m = c->memory;
        *carves = c->next;
        m->carved -= c->bytes;
        m->n_carves--;
        if (m->has_ended) {
            ended += c->bytes;
            if (!m->n_carves)
                host_free(m);
        } else {
            jm_ledger_carve(account, m->account, c->bytes, False);
            jm_scope_grow(tid, m->kind, c->bytes, 0);
        }
        if (c->is_floating)
            jm_array_remove(&floating, (Carve **)jm_array_find(&floating, &c, sizeof c) - (Carve **)floating.records);
        host_free(c);
    }
    return ended;
}

void jm_driver_memory_after_fork_in_child(void)
{
    // The parent holds the same buffers, and its ledger counts them.
    for (DriverMemory *m = newest; m; m = m->next) {
        if (m->account)
            jm_ledger_debit(m->account, m->bytes - m->carved);
        m->account = 0;
    }
    for (DriverMemory *m = newest; m; m = m->next)
        m->bytes = m->carved;
}

void jm_driver_memory_write_counters(void)
{
    jm_trace_nonzero("driver-block-without-memory", n_uncovered);
}
