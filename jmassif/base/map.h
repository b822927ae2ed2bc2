// SPDX-License-Identifier: GPL-2.0-or-later
//
// A hash map of nodes by a word: an address, a handle, a descriptor. The nodes belong to the caller and begin with the
// fields of MapNode. A key may occur more than once; the newest is found.

#pragma once

#include "host/types.h"

typedef struct MapNode {
    struct MapNode *next;
    UWord key;
} MapNode;

typedef struct {
    const HChar *name; // of the recorder's memory
    MapNode **chains;
    UInt n_chains, n;
} Map;

#define JM_MAP(name)                                                                                                   \
    {                                                                                                                  \
        (name), NULL, 0, 0                                                                                             \
    }

void jm_map_clear(Map *map, void (*delete_node)(void *node)); // NULL keeps the nodes

void jm_map_add(Map *map, void *node);
void *jm_map_find(const Map *map, UWord key); // NULL if there is none
void *jm_map_remove(Map *map, UWord key);     // returns the node, which is the caller's again

// The node after another one, in no order; NULL begins, and ends. A node may be removed once the next one is known.
void *jm_map_next(const Map *map, void *after);

static inline UInt jm_map_n(const Map *map)
{
    return map->n;
}
