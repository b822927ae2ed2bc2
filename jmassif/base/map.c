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

Map *jm_map_new(const HChar *name)
{
    Map *map = host_alloc_zeroed(name, 1, sizeof *map);
    map->name = name;
    map->n_chains = sizes[0];
    map->chains = host_alloc_zeroed(name, map->n_chains, sizeof *map->chains);
    return map;
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

void jm_map_delete(Map *map, void (*delete_node)(void *node))
{
    for (UInt c = 0; c < map->n_chains && delete_node; c++)
        for (MapNode *node = map->chains[c], *next; node; node = next) {
            next = node->next;
            delete_node(node);
        }
    host_free(map->chains);
    host_free(map);
}

void jm_map_add(Map *map, void *node)
{
    map->n++;
    link_node(map, node);
    if (map->n > map->n_chains)
        grow(map);
}

void *jm_map_find(const Map *map, UWord key)
{
    MapNode *node = *chain_of(map, key);
    while (node && node->key != key)
        node = node->next;
    return node;
}

void *jm_map_remove(Map *map, UWord key)
{
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

MapNode **jm_map_nodes(const Map *map, UInt *n)
{
    *n = map->n;
    MapNode **nodes = map->n ? host_alloc(map->name, map->n * sizeof *nodes) : NULL;
    UInt i = 0;
    for (MapNode *node = NULL; (node = jm_map_next(map, node));)
        nodes[i++] = node;
    return nodes;
}
