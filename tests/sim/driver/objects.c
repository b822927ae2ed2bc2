/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lock, the arena of objects, and the map from addresses to objects. Both live in address space
 * reserved once and touched as it fills, never in the heap: the simulation's book-keeping must not
 * show in the heap profile of the program that uses it. The map is a sorted array because programs
 * hold thousands of blocks, not millions, and a sorted array answers "which block covers this
 * address" as easily as "is this a block". */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "driver.h"

enum { MAX_OBJECTS = 1 << 20, SLOT_BYTES = 256 };
_Static_assert(sizeof(struct object) <= SLOT_BYTES, "an object fits its slot");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *arena;
static size_t n_slots;
static struct object *first_unused; /* chained through .after */
static struct object **map;
static size_t n_mapped;

void sim_lock(void)
{
    pthread_mutex_lock(&lock);
}

void sim_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

static void *reserve(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

struct object *object_slot(size_t i)
{
    return (struct object *)(arena + i * SLOT_BYTES);
}

size_t object_count(void)
{
    return n_slots;
}

struct object *object_new(enum kind kind)
{
    if (!arena) {
        arena = reserve((size_t)MAX_OBJECTS * SLOT_BYTES);
        map = reserve(MAX_OBJECTS * sizeof *map);
        if (!arena || !map)
            return NULL;
    }
    struct object *object = first_unused;
    if (object)
        first_unused = object->after;
    else if (n_slots < MAX_OBJECTS)
        object = object_slot(n_slots++);
    else
        return NULL;
    memset(object, 0, sizeof *object);
    object->kind = kind;
    return object;
}

void object_delete(struct object *object)
{
    /* Threads may still have a destroyed context current: its slot must stay recognisable. */
    bool reusable = object->kind != CONTEXT;
    object->kind = UNUSED;
    if (reusable) {
        object->after = first_unused;
        first_unused = object;
    }
}

struct object *object_check(const void *handle, enum kind kind)
{
    uintptr_t offset = (uintptr_t)handle - (uintptr_t)arena;
    if (!arena || offset >= n_slots * SLOT_BYTES || offset % SLOT_BYTES != 0)
        return NULL;
    struct object *object = (struct object *)(arena + offset);
    return object->kind == kind ? object : NULL;
}

/* The place of the first object at or above the address. */
static size_t place(uintptr_t address)
{
    size_t low = 0, high = n_mapped;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (map[middle]->address < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool map_insert(struct object *object)
{
    size_t at = place(object->address);
    if (n_mapped == MAX_OBJECTS)
        return false;
    memmove(map + at + 1, map + at, (n_mapped - at) * sizeof *map);
    map[at] = object;
    n_mapped++;
    return true;
}

void map_remove(struct object *object)
{
    size_t at = place(object->address);
    while (map[at] != object)
        at++;
    n_mapped--;
    memmove(map + at, map + at + 1, (n_mapped - at) * sizeof *map);
}

struct object *map_find(uintptr_t address)
{
    size_t at = place(address);
    return at < n_mapped && map[at]->address == address ? map[at] : NULL;
}

struct object *map_within(uintptr_t address)
{
    size_t at = place(address);
    if (at < n_mapped && map[at]->address == address)
        return map[at];
    if (at == 0)
        return NULL;
    struct object *below = map[at - 1];
    return address - below->address < below->span_bytes ? below : NULL;
}

bool map_overlaps(uintptr_t address, size_t bytes)
{
    size_t at = place(address);
    return map_within(address) != NULL || (at < n_mapped && map[at]->address < address + bytes);
}
