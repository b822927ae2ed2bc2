// SPDX-License-Identifier: GPL-2.0-or-later
//
// Maps of driver memory; see map.h. A map is a sorted array with binary search: a process has some hundreds of mappings
// and looks up more often than it maps. A new mapping cuts those that it overlaps, as in the kernel.

#include "driver/map.h"
#include "base/libc.h"
#include "base/stats.h"
#include "host/host.h"

typedef struct {
    Addr start, end;
    DriverFile *file;
    DriverMemory *memory;
} DriverMapping;

struct DriverMap {
    DriverMap *next;
    DriverMapping *mappings; // sorted by address, without overlaps
    UInt n, capacity;
};

static DriverMap *maps;

DriverMap *jm_driver_map_new(void)
{
    DriverMap *map = host_alloc_zeroed("jm.driver.map", 1, sizeof *map);
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
    for (UInt i = 0; i < map->n; i++)
        if (map->mappings[i].file)
            jm_driver_file_release(tid, map->mappings[i].file);
    if (map->mappings)
        host_free(map->mappings);
    host_free(map);
}

// Index of the first mapping that ends behind `address`.
static UInt first_after(const DriverMap *map, Addr address)
{
    UInt low = 0, high = map->n;
    while (low < high) {
        UInt middle = low + (high - low) / 2;
        if (map->mappings[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void insert_mapping(DriverMap *map, UInt i, DriverMapping mapping)
{
    if (map->n == map->capacity) {
        map->capacity = map->capacity ? 2 * map->capacity : 64;
        map->mappings = host_realloc("jm.driver.map", map->mappings, map->capacity * sizeof *map->mappings);
    }
    memmove(&map->mappings[i + 1], &map->mappings[i], (map->n - i) * sizeof *map->mappings);
    map->mappings[i] = mapping;
    map->n++;
}

static void remove_mapping(ThreadId tid, DriverMap *map, UInt i)
{
    DriverFile *file = map->mappings[i].file;
    memmove(&map->mappings[i], &map->mappings[i + 1], (map->n - i - 1) * sizeof *map->mappings);
    map->n--;
    if (file)
        jm_driver_file_release(tid, file); // last, because it may end the memory, which changes maps
}

// Splits a mapping around the address. Both parts hold the file.
static void part_at(DriverMap *map, Addr address)
{
    UInt i = first_after(map, address);
    if (i == map->n || map->mappings[i].start >= address)
        return;
    DriverMapping upper = map->mappings[i];
    map->mappings[i].end = upper.start = address;
    if (upper.file)
        jm_driver_file_hold(upper.file);
    insert_mapping(map, i + 1, upper);
}

void jm_driver_map_remove(ThreadId tid, DriverMap *map, Addr start, ULong bytes)
{
    if (!map->n)
        return;
    part_at(map, start);
    part_at(map, start + bytes);
    for (UInt i = first_after(map, start); i < map->n && map->mappings[i].start < start + bytes;)
        remove_mapping(tid, map, i);
}

void jm_driver_map_remove_at(ThreadId tid, DriverMap *map, Addr start)
{
    UInt i = first_after(map, start);
    if (i < map->n && map->mappings[i].start == start)
        remove_mapping(tid, map, i);
}

void jm_driver_map_add(ThreadId tid, DriverMap *map, Addr start, ULong bytes, DriverFile *file, DriverMemory *memory)
{
    if (!bytes || start + bytes < start)
        return;
    if (file)
        jm_driver_file_hold(file);
    jm_driver_map_remove(tid, map, start, bytes);
    insert_mapping(map, first_after(map, start), (DriverMapping){start, start + bytes, file, memory});
}

void jm_driver_map_move(ThreadId tid, DriverMap *map, Addr from, ULong bytes, Addr to)
{
    if (!map->n)
        return;
    jm_driver_map_remove(tid, map, to, bytes);
    part_at(map, from);
    part_at(map, from + bytes);
    Addr at = from;
    for (UInt i = first_after(map, at); i < map->n && map->mappings[i].start < from + bytes; i = first_after(map, at)) {
        DriverMapping moved = map->mappings[i];
        at = moved.end;
        memmove(&map->mappings[i], &map->mappings[i + 1], (map->n - i - 1) * sizeof *map->mappings);
        map->n--;
        moved.start += to - from;
        moved.end += to - from;
        insert_mapping(map, first_after(map, moved.start), moved);
    }
}

UInt jm_driver_map_count(const DriverMap *map)
{
    return map->n;
}

Bool jm_driver_map_has(const DriverMap *map, Addr address)
{
    UInt i = first_after(map, address);
    return i < map->n && map->mappings[i].start <= address;
}

DriverMemory *jm_driver_maps_find(Addr address, Addr *end)
{
    for (const DriverMap *map = maps; map; map = map->next) {
        UInt i = first_after(map, address);
        if (i == map->n || map->mappings[i].start > address || !map->mappings[i].memory)
            continue;
        *end = map->mappings[i].end;
        return map->mappings[i].memory;
    }
    return NULL;
}

void jm_driver_maps_forget(const DriverMemory *memory)
{
    for (DriverMap *map = maps; map; map = map->next)
        for (UInt i = 0; i < map->n; i++)
            if (map->mappings[i].memory == memory)
                map->mappings[i].memory = NULL;
}

void jm_driver_maps_stats(void)
{
    UInt n = 0, capacity = 0;
    for (const DriverMap *map = maps; map; map = map->next) {
        n += map->n;
        capacity += map->capacity;
    }
    jm_stats_row("jm.driver.map", "mappings of driver memory", n, capacity * sizeof(DriverMapping));
}
