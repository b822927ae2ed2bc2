// SPDX-License-Identifier: GPL-2.0-or-later
//
// Tensors as PyTorch lays them out, as far as their roles are read off them: an object has a virtual table, its counts
// (two words to 2.2, one from then on), and then what is its own.

#include <stdlib.h>
#include "jmassif.h"

#define N_WORDS 24

static long table[4];
static long no_tensor[N_WORDS]; // stands for a tensor that there is none of: nobody counts it

static long *object(int head)
{
    long *made = calloc(N_WORDS, sizeof *made);
    made[0] = (long)table;
    made[1] = head == 3 ? 1 : 1 | 1L << 32;
    if (head == 3)
        made[2] = 1;
    return made;
}

// What the test's rules call a tensor.
__attribute__((noinline)) long *allocate(long n_bytes)
{
    long *volatile made = malloc(n_bytes);
    return made;
}

// `head`: 2 or 3 words. `wants`: the leaf wants gradients.
long *tensor(long n_bytes, int head, long *gradient, int wants)
{
    long *impl = object(head), *storage = object(head), *meta = object(1);
    storage[head] = (long)allocate(n_bytes);
    meta[1] = 0;
    meta[5] = gradient ? (long)gradient : (long)no_tensor;
    meta[head == 3 ? 17 : 18] = wants;
    impl[head] = (long)storage;
    impl[head + 1] = (long)meta;
    no_tensor[0] = (long)table;
    return impl;
}

void tell(const char *mark)
{
    JMASSIF_MARK(mark);
}
