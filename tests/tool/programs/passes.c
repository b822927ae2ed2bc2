// SPDX-License-Identifier: GPL-2.0-or-later
//
// usage: passes SEED
// Passes that allocate blocks at random, free some of them, and keep the others; what is kept is freed at random
// outside of the passes. Prints what was held when most was held: bytes that outlived their pass or were made outside
// of one, and bytes that did not outlive theirs; then the same of all that was ever allocated.

#include <stdio.h>
#include <stdlib.h>

#define N_BLOCKS 4000

static struct block {
    char *p;
    size_t bytes;
    int is_outside; // of passes
    int has_survived;
    int is_at_peak;
} blocks[N_BLOCKS];
static int n_blocks;
static size_t total, peak;

static unsigned random_number(unsigned below)
{
    static unsigned long state;
    if (!state)
        state = below; // the seed, the first time
    state = state * 6364136223846793005ul + 1442695040888963407ul;
    return (unsigned)(state >> 33) % (below ? below : 1);
}

__attribute__((noinline)) static void make(int is_outside)
{
    struct block *b = &blocks[n_blocks++];
    b->bytes = 1000 + random_number(9000);
    b->p = malloc(b->bytes);
    b->p[0] = 1;
    b->is_outside = is_outside;
    total += b->bytes;
    if (total > peak) {
        peak = total;
        for (int i = 0; i < n_blocks; i++)
            blocks[i].is_at_peak = blocks[i].p != NULL;
    }
}

// A live one of the blocks from `first` on.
__attribute__((noinline)) static void drop(int first)
{
    for (int tries = 0; tries < 20 && first < n_blocks; tries++) {
        struct block *b = &blocks[first + (int)random_number((unsigned)(n_blocks - first))];
        if (!b->p)
            continue;
        total -= b->bytes;
        free(b->p);
        b->p = NULL;
        return;
    }
}

__attribute__((noinline)) static void pass(void)
{
    int first = n_blocks;
    for (int i = 0; i < 30; i++) {
        make(0);
        if (random_number(2))
            drop(first);
    }
    for (int i = first; i < n_blocks; i++)
        blocks[i].has_survived = blocks[i].p != NULL;
}

static void print(int at_peak_only)
{
    size_t kept = 0, fleeting = 0;
    for (int i = 0; i < n_blocks; i++)
        if (blocks[i].is_at_peak || !at_peak_only)
            *(blocks[i].is_outside || blocks[i].has_survived ? &kept : &fleeting) += blocks[i].bytes;
    printf("%zu %zu\n", kept, fleeting);
}

int main(int argc, char **argv)
{
    static char buffer[1000];
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer); // on the heap there is nothing else
    random_number(argc > 1 ? (unsigned)atoi(argv[1]) : 1);
    for (int round = 0; round < 60; round++) {
        pass();
        for (int i = 0; i < 5; i++) {
            unsigned what = random_number(4);
            if (what == 0)
                make(1);
            for (unsigned n = 0; what > 1 && n < 5; n++)
                drop(0);
        }
    }
    print(1);
    print(0);
    return 0;
}
