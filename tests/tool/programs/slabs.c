// SPDX-License-Identifier: GPL-2.0-or-later
//
// Blocks of all small sizes and some larger, up to a hundred thousand at once, allocated, resized and freed at random.
// Each is full of its own number, so that one that overlaps another is found; and what is freed of one size is wanted
// for others next. Prints the bytes that live at the end.

#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef N
#define N 100000
#endif

typedef struct {
    unsigned char *start;
    size_t bytes;
    unsigned char content;
} Held;

static Held held[N];
static uint64_t state = 1;

static size_t random_below(size_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(state >> 33) % n;
}

static void check(const Held *h, size_t bytes, unsigned char content)
{
    for (size_t i = 0; i < bytes; i++) {
        if (h->start[i] != content) {
            fprintf(stderr, "byte %zu of %zu is %d, not %d\n", i, h->bytes, h->start[i], content);
            exit(1);
        }
    }
}

static void fill(Held *h, unsigned char *start, size_t bytes)
{
    if (!start || (uintptr_t)start % 16 || malloc_usable_size(start) < bytes) {
        fprintf(stderr, "%zu bytes at %p\n", bytes, (void *)start);
        exit(1);
    }
    *h = (Held){start, bytes, (unsigned char)(1 + random_below(255))};
    memset(start, h->content, malloc_usable_size(start));
}

int main(void)
{
    size_t live = 0;
    for (int round = 0; round < 8; round++) {
        size_t most = round % 2 ? 9000 : (size_t)64 << round; // sizes of this round are below
        for (int step = 0; step < N / 2; step++) {
            Held *h = &held[random_below(most > 4000 ? N / 20 : N)];
            size_t bytes = random_below(most);
            if (h->start)
                check(h, h->bytes, h->content);
            live -= h->bytes;
            switch (random_below(4)) {
            case 0:
                free(h->start);
                *h = (Held){NULL, 0, 0};
                break;
            case 1: {
#ifdef NEVER_SHRINKS
                bytes = bytes < h->bytes ? h->bytes : bytes;
#endif
                size_t kept = h->bytes < bytes + 1 ? h->bytes : bytes + 1;
                h->start = realloc(h->start, bytes + 1);
                check(h, kept, h->content);
                fill(h, h->start, bytes + 1);
                break;
            }
            case 2:
                free(h->start);
                h->start = calloc(1, bytes);
                check(h, bytes, 0);
                fill(h, h->start, bytes);
                break;
            default:
                free(h->start);
                fill(h, malloc(bytes), bytes);
            }
            live += h->bytes;
        }
        if (round == 3) {
            for (size_t i = 0; i < N; i++) {
                free(held[i].start);
                live -= held[i].bytes;
                held[i] = (Held){NULL, 0, 0};
            }
        }
    }
    printf("%zu\n", live);
    return 0;
}
