// SPDX-License-Identifier: GPL-2.0-or-later
//
// Maps of driver memory; see map.h. A map is a sorted array with binary search: a process has some hundreds of mappings
// and looks up more often than it maps. A new mapping cuts those that it overlaps, as in the kernel.

#include "driver/map.h"
#include "base/array.h"
#include "base/stats.h"
#include "host/host.h"

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
    if (map->mappings.records)
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

void jm_driver_map_move(ThreadId tid, DriverMap *map, Addr from, ULong bytes, Addr to)
{
    if (!jm_array_n(&map->mappings))
        return;
    jm_driver_map_remove(tid, map, to, bytes);
    part_at(map, from);
    part_at(map, from + bytes);
    Addr at = from;
    for (Word i = first_after(map, at); i < jm_array_n(&map->mappings) && mapping_at(map, i)->start < from + bytes;
         i = first_after(map, at)) {
        DriverMapping moved = *mapping_at(map, i);
        at = moved.end;
        jm_array_remove(&map->mappings, i);
        moved.start += to - from;
        moved.end += to - from;
        jm_array_insert(&map->mappings, first_after(map, moved.start), &moved);
    }
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

DriverMemory *jm_driver_maps_find(Addr address, Addr *end)
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

void jm_driver_maps_forget(const DriverMemory *memory)
{
    for (DriverMap *map = maps; map; map = map->next)
        for (Word i = 0; i < jm_array_n(&map->mappings); i++)
            if (mapping_at(map, i)->memory == memory)
                mapping_at(map, i)->memory = NULL;
}

void jm_driver_maps_stats(void)
{
    UInt n = 0, capacity = 0;
    for (const DriverMap *map = maps; map; map = map->next) {
        n += jm_array_n(&map->mappings);
        capacity += map->mappings.capacity;
    }
    jm_stats_row("jm.driver.map", "mappings of driver memory", n, capacity * sizeof(DriverMapping));
}
