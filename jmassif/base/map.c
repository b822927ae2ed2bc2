// SPDX-License-Identifier: GPL-2.0-or-later
//
// Chains, with a prime number of them: keys are mostly addresses, multiples of a power of two.

#include "base/map.h"
#include "host/host.h"

static const UInt sizes[] = {769,    1543,   3079,    6151,    12289,   24593,    49157,    98317,    196613,
                             393241, 786433, 1572869, 3145739, 6291469, 12582917, 25165843, 50331653, 100663319};

static MapNode **chain_of(const Map *map, UWord key)
{
    return &map->chains[key % map->n_chains];
}

static void link_node(Map *map, MapNode *node)
{
    MapNode **chain = chain_of(map, node->key);
    node->next = *chain;
    *chain = node;
}

static void grow(Map *map)
{
    UInt i = 0, old_n = map->n_chains;
    while (i < sizeof sizes / sizeof *sizes && sizes[i] <= old_n)
        i++;
    if (i == sizeof sizes / sizeof *sizes)
        return;
    MapNode **old = map->chains;
    map->n_chains = sizes[i];
    map->chains = host_alloc_zeroed(map->name, map->n_chains, sizeof *map->chains);
    for (UInt c = 0; c < old_n; c++)
        for (MapNode *node = old[c], *next; node; node = next) {
            next = node->next;
            link_node(map, node);
        }
    host_free(old);
}

void jm_map_clear(Map *map, void (*delete_node)(void *node))
{
    for (MapNode *node = jm_map_next(map, NULL), *next; node && delete_node; node = next) {
        next = jm_map_next(map, node);
        delete_node(node);
    }
    host_free(map->chains);
    *map = (Map)JM_MAP(map->name);
}

void jm_map_add(Map *map, void *node)
{
    if (!map->n_chains)
        grow(map);
    map->n++;
    link_node(map, node);
    if (map->n > map->n_chains)
        grow(map);
}

void *jm_map_find(const Map *map, UWord key)
{
    MapNode *node = map->n ? *chain_of(map, key) : NULL;
    while (node && node->key != key)
        node = node->next;
    return node;
}

void *jm_map_remove(Map *map, UWord key)
{
    if (!map->n)
        return NULL;
    MapNode **at = chain_of(map, key);
    while (*at && (*at)->key != key)
        at = &(*at)->next;
    MapNode *node = *at;
    if (node) {
        *at = node->next;
        map->n--;
    }
    return node;
}

void *jm_map_next(const Map *map, void *after)
{
    const MapNode *node = after;
    if (node && node->next)
        return node->next;
    for (UWord c = node ? node->key % map->n_chains + 1 : 0; c < map->n_chains; c++)
        if (map->chains[c])
            return map->chains[c];
    return NULL;
}
