// SPDX-License-Identifier: GPL-2.0-or-later
//
// Programs that leak, and programs that only look like it: growth BEHAVIOUR STEPS none|mark|region|worker [EFFORT].
// Each step works for a while, and makes and frees a buffer, as real ones do. Prints how many bytes a step leaks.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jmassif.h"

static unsigned long n_steps;
static volatile uint64_t result;

static void work(unsigned long amount)
{
    for (unsigned long i = 0; i < amount; i++)
        result = result * 6364136223846793005u + i;
}

typedef struct Chunk {
    struct Chunk *next;
    char bytes[];
} Chunk;

static Chunk *chain(Chunk *next, size_t bytes)
{
    Chunk *fresh = malloc(sizeof *fresh + bytes); // leak
    memset(fresh->bytes, 1, bytes);
    fresh->next = next;
    return fresh;
}

static Chunk *kept;

// A pool that grows by a chunk of 64 KiB when 16 objects of 4 KiB are used up, and gets none back.
static void pool(unsigned long step)
{
    if (step % 16 == 0)
        kept = chain(kept, 65536 - sizeof(Chunk));
}

static void trickle(unsigned long step)
{
    (void)step;
    kept = chain(kept, 1024 - sizeof(Chunk));
    char *large = malloc(8u << 20);
    memset(large, 1, 1u << 20);
    work(20000);
    free(large);
}

static void second_half(unsigned long step)
{
    if (step >= n_steps / 2)
        kept = chain(kept, 20000 - sizeof(Chunk));
}

// Up to nine of ten steps' chunks are let go of, the tenth is not.
static void sawtooth(unsigned long step)
{
    static Chunk *some;
    some = chain(some, 30000 - sizeof(Chunk));
    if (step % 10 == 9) {
        Chunk *last = some;
        for (Chunk *chunk = some->next, *next; chunk; chunk = next) {
            next = chunk->next;
            free(chunk);
        }
        last->next = kept;
        kept = last;
        some = NULL;
    }
}

// Keeps what each step reads, which is larger in each.
static void images(unsigned long step)
{
    kept = chain(kept, (step + 1) * 100000 - sizeof(Chunk));
}

// ---- what is no leak

// Reads the same, and keeps that of the last step alone.
static void inputs(unsigned long step)
{
    static Chunk *input;
    Chunk *before = input;
    input = chain(NULL, (step + 1) * 100000 - sizeof(Chunk));
    free(before);
}

static void cache(unsigned long step)
{
    static Chunk *slots[4096];
    unsigned long n = n_steps / 2, slot = step % n;
    if (!slots[slot])
        slots[slot] = chain(NULL, 20000);
}

static void once(unsigned long step)
{
    if (step == n_steps / 3)
        for (int i = 0; i < 1000; i++)
            kept = chain(kept, 2000);
}

static void warm_up(unsigned long step)
{
    if (step < n_steps / 8)
        kept = chain(kept, 100000);
}

// An arena that doubles until the steps' objects fit in it.
static void arena(unsigned long step)
{
    static size_t size, used;
    used = step % (n_steps / 4) * 10000;
    while (size < used) {
        size = size ? 2 * size : 65536;
        kept = chain(kept, size);
    }
}

// A cache of what is asked for at random, which fills ever more slowly.
static void random_cache(unsigned long step)
{
    static Chunk *slots[4096];
    (void)step;
    unsigned long slot = (result >> 33) % (n_steps / 4);
    if (!slots[slot])
        slots[slot] = chain(NULL, 20000);
}

static const struct {
    const char *name;
    void (*step)(unsigned long);
    double slope;
} behaviours[] = {
    {"pool", pool, 4096},         {"trickle", trickle, 1024}, {"second-half", second_half, 20000},
    {"sawtooth", sawtooth, 3000}, {"cache", cache, 0},        {"once", once, 0},
    {"warm-up", warm_up, 0},      {"arena", arena, 0},        {"random-cache", random_cache, 0},
    {"inputs", inputs, 0},        {"images", images, 0},
};

int main(int argc, char **argv)
{
    if (argc != 4 && argc != 5)
        return 2;
    n_steps = strtoul(argv[2], NULL, 10);
    unsigned long effort = argc > 4 ? strtoul(argv[4], NULL, 10) : 100000;
    unsigned which = 0;
    while (strcmp(behaviours[which].name, argv[1]))
        if (++which == sizeof behaviours / sizeof *behaviours)
            return 2;
    if (!strcmp(argv[3], "worker") && fork() != 0)
        return wait(NULL) < 0;
    Chunk *setup = NULL;
    for (int i = 0; i < 500; i++)
        setup = chain(setup, 4000);
    for (unsigned long step = 0; step < n_steps; step++) {
        if (!strcmp(argv[3], "region"))
            JMASSIF_REGION_BEGIN("step");
        char *buffer = malloc(1u << 20);
        work(effort);
        memset(buffer, 1, 1u << 20);
        behaviours[which].step(step);
        free(buffer);
        if (!strcmp(argv[3], "region"))
            JMASSIF_REGION_END("step");
        if (!strcmp(argv[3], "mark"))
            JMASSIF_MARK("step");
    }
    printf("%g\n", behaviours[which].slope);
    return setup == kept;
}
