// SPDX-License-Identifier: GPL-2.0-or-later
//
// Allocates and frees before, between and after two marks, in a way that only it knows, and prints what came of it: of
// each function the bytes that are new and still there at the second mark, those of the first that are gone by then,
// and those that came and went in between. Sizes are primes, so no sum can be right by chance. With an argument each
// function churns as well.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jmassif.h"

#define N 40

typedef struct {
    const char *name;
    unsigned long new_bytes, freed, passing;
} Truth;

static int churns;
static volatile char *touched;

#define NOINLINE __attribute__((noinline))

// Only what lives across both marks: nothing of the range.
static NOINLINE void *stays(size_t bytes)
{
    return malloc(bytes);
}

// Only comes: all of it is new.
static NOINLINE void *comes(size_t bytes)
{
    return malloc(bytes);
}

// Only goes.
static NOINLINE void *goes(size_t bytes)
{
    return malloc(bytes);
}

// Of both phases alike, so by one stack.
static NOINLINE void *changes(size_t bytes)
{
    return malloc(bytes);
}

static NOINLINE void passes(Truth *truth, size_t bytes)
{
    touched = malloc(bytes);
    free((void *)touched);
    truth->passing += bytes;
}

static NOINLINE void *grows(void *before, size_t bytes)
{
    return realloc(before, bytes);
}

// In the second phase every third block of the first gives way to one of another size, and every fourth of those goes
// as well: what only the blocks one by one can tell.
static NOINLINE void turn(Truth *truth, void **held, int phase)
{
    for (int i = 0; i < N; i++) {
        if (phase && i % 3)
            continue;
        if (phase) {
            free(held[i]);
            truth->freed += 307 + 3 * i;
        }
        held[i] = changes(phase ? 701 + i : 307 + 3 * i);
        if (phase && i % 4 == 0) {
            free(held[i]);
            held[i] = NULL;
            truth->passing += 701 + i;
        } else if (phase)
            truth->new_bytes += 701 + i;
    }
}

int main(int argc, char **argv)
{
    Truth stay = {"stays", 0, 0, 0}, come = {"comes", 0, 0, 0}, go = {"goes", 0, 0, 0}, change = {"changes", 0, 0, 0},
          pass = {"passes", 0, 0, 0}, grow = {"grows", 0, 0, 0};
    void *old[N], *gone[N], *kept[N], *new_ones[N], *grown;
    (void)argv;
    churns = argc > 1;
    for (int i = 0; i < N; i++) {
        kept[i] = stays(101 + i);
        gone[i] = goes(211 + i);
    }
    grown = grows(NULL, 1009);
    passes(&(Truth){0}, 4001);
    for (int phase = 0; phase < 2; phase++) {
        turn(&change, old, phase);
        if (!phase)
            JMASSIF_MARK("first");
    }

    for (int i = 0; i < N; i++) {
        new_ones[i] = comes(503 + i);
        come.new_bytes += 503 + i;
        passes(&pass, 1013 + i);
        if (i % 2) {
            free(gone[i]);
            gone[i] = NULL;
            go.freed += 211 + i;
        }
    }
    // A block that grows is a new one of its new size.
    grown = grows(grown, 2003);
    grow.freed += 1009;
    grow.new_bytes += 2003;
    if (churns)
        for (int i = 0; i < 5000; i++)
            passes(&pass, 17 + i % 100);
    JMASSIF_MARK("second");

    for (int i = 0; i < N; i++) {
        free(kept[i]);
        free(gone[i]);
        free(old[i]);
        free(new_ones[i]);
    }
    free(grown);
    const Truth *all[] = {&stay, &come, &go, &change, &pass, &grow};
    for (int i = 0; i < (int)(sizeof all / sizeof all[0]); i++)
        printf("%s %lu %lu %lu\n", all[i]->name, all[i]->new_bytes, all[i]->freed, all[i]->passing);
    return 0;
}
