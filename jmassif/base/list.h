// SPDX-License-Identifier: GPL-2.0-or-later
//
// Doubly linked lists of nodes that have two fields for it. `first` is the newest node, NULL of an empty list.

#pragma once

#define JM_LIST_ADD(first, node, next, previous)                                                                       \
    do {                                                                                                               \
        (node)->previous = NULL;                                                                                       \
        (node)->next = (first);                                                                                        \
        if (first)                                                                                                     \
            (first)->previous = (node);                                                                                \
        (first) = (node);                                                                                              \
    } while (0)

#define JM_LIST_REMOVE(first, node, next, previous)                                                                    \
    do {                                                                                                               \
        if ((node)->next)                                                                                              \
            (node)->next->previous = (node)->previous;                                                                 \
        if ((node)->previous)                                                                                          \
            (node)->previous->next = (node)->next;                                                                     \
        else                                                                                                           \
            (first) = (node)->next;                                                                                    \
    } while (0)
