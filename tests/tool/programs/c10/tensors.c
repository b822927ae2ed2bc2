// SPDX-License-Identifier: GPL-2.0-or-later
//
// Segments, tensors inside them, and a mark wherever the allocator says how it stands.

#include "../../../../jmassif/jmassif.h"

#include <stddef.h>
#include <stdio.h>

char *new_segment(size_t bytes);
void hand_out(char *block, size_t bytes);
void take_back(char *block, size_t bytes);
void free_segment(char *segment, size_t bytes);
void say(const char *point);

static void point(const char *name)
{
    say(name);
    JMASSIF_MARK(name);
}

static __attribute__((noinline)) void make_weights(char *at)
{
    hand_out(at, 1 << 20);
}
static __attribute__((noinline)) void make_activation(char *at)
{
    hand_out(at, 3 << 20);
}

int main(void)
{
    char *large = new_segment(20 << 20), *small = new_segment(2 << 20);
    if (!large || !small)
        return 1;
    point("empty");
    make_weights(small);
    make_activation(large);
    make_activation(large + (3 << 20));
    point("peak");
    take_back(large, 3 << 20);
    point("one-freed");
    take_back(large + (3 << 20), 3 << 20);
    free_segment(large, 20 << 20);
    point("cache-emptied");
    take_back(small, 1 << 20);
    free_segment(small, 2 << 20);
    point("nothing");
    return 0;
}
