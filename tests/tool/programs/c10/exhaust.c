// SPDX-License-Identifier: GPL-2.0-or-later
//
// Runs out of memory in the way that its argument names, on a board of 4 GiB. Tensors of 1.2 GB stand a quarter as
// large here, and twelve of them fill the board; three are freed, and 3.4 GB are asked for.
//
// exhaust own      each tensor has a segment of its own
// exhaust shared   three tensors share a segment, and the ones in the middle are freed
// exhaust other    as own, and somebody asks who knows nothing of the cache
// exhaust full     none is freed
// exhaust pages    all are in one segment that grows by pages, and gives pages back
// exhaust nopages  likewise, but none is freed
//
// Prints what the allocator knows just after the last failure, then how it ended.

#include <stdio.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

int cudaMalloc(void **, size_t);
char *caching_alloc(size_t bytes, size_t segment_bytes);
char *expandable_alloc(size_t bytes);
void caching_free(char *at);
void caching_say(void);

enum { N_TENSORS = 12, TENSOR = 300, ASKED = 850 };

__attribute__((noinline)) char *make_tensor(size_t segment_bytes)
{
    return caching_alloc(TENSOR * MIB, segment_bytes);
}

__attribute__((noinline)) char *make_large(void)
{
    return caching_alloc(ASKED * MIB, ASKED * MIB);
}

static int grow_by_pages(int is_full)
{
    char *tensors[N_TENSORS];
    if (cudaMalloc((void **)&tensors[0], MIB) != 0) // the runtime makes the context
        return 1;
    for (int i = 0; i < N_TENSORS; i++)
        if (!(tensors[i] = expandable_alloc(TENSOR * MIB)))
            return 1;
    for (int i = 1; i < 9 && !is_full; i += 3)
        caching_free(tensors[i]);
    int is_there = expandable_alloc((ASKED + 10) * MIB) != NULL;
    if (is_full)
        caching_say();
    printf("succeeded %d\n", is_there);
    return 0;
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    if (strcmp(way, "pages") == 0 || strcmp(way, "nopages") == 0)
        return grow_by_pages(way[0] == 'n');
    size_t segment_bytes = strcmp(way, "shared") == 0 ? 3 * TENSOR * MIB : TENSOR * MIB;
    char *tensors[N_TENSORS];
    for (int i = 0; i < N_TENSORS; i++)
        if (!(tensors[i] = make_tensor(segment_bytes)))
            return 1;
    for (int i = 1; i < 9 && strcmp(way, "full") != 0; i += 3)
        caching_free(tensors[i]);
    void *foreign = NULL;
    int is_there;
    if (strcmp(way, "other") == 0)
        is_there = cudaMalloc(&foreign, ASKED * MIB) == 0;
    else
        is_there = make_large() != NULL;
    caching_say();
    printf("succeeded %d\n", is_there);
    return 0;
}
