/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An allocator of the program's own says which parts of its segments it hands out; the marks say what it has then:
 * "tensors cache others", bytes of device memory. */
#include <stdio.h>
#include <stdlib.h>

#include "jmassif.h"

int cudaMalloc(void **address, size_t bytes);
int cudaFree(void *address);

static char *get(size_t bytes)
{
    void *address;
    if (cudaMalloc(&address, bytes))
        exit(1);
    return address;
}

static void now(size_t tensors, size_t cache, size_t others)
{
    char text[100];
    snprintf(text, sizeof text, "%zu %zu %zu", tensors, cache, others);
    JMASSIF_MARK(text);
}

int main(void)
{
    const size_t mib = 1 << 20;
    char *segment = get(20 * mib), *plain = get(3 * mib);
    now(0, 0, 23 * mib);
    JMASSIF_TENSOR(segment, 5 * mib);
    JMASSIF_TENSOR(segment + 5 * mib, mib + 512);
    now(6 * mib + 512, 14 * mib - 512, 3 * mib);
    JMASSIF_TENSOR_FREED(segment);
    now(mib + 512, 19 * mib - 512, 3 * mib);

    /* None of these is a part of a block, or it is one already. */
    JMASSIF_TENSOR(segment + 5 * mib, mib);
    JMASSIF_TENSOR(segment + 19 * mib, 2 * mib);
    JMASSIF_TENSOR(segment, 0);
    JMASSIF_TENSOR(segment, -1UL);
    JMASSIF_TENSOR(&mib, sizeof mib);
    JMASSIF_TENSOR(NULL, 1);
    JMASSIF_TENSOR(-1UL, 1);
    JMASSIF_TENSOR_FREED(segment);
    JMASSIF_TENSOR_FREED(NULL);
    now(mib + 512, 19 * mib - 512, 3 * mib);

    cudaFree(plain);
    cudaFree(segment); /* with what it has handed out */
    now(0, 0, 0);
    return 0;
}
