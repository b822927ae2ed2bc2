/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the parts of the program of sequences share: chance, the book, and complaints. A walker is a thread's: its
 * chance, its own blocks and its part of the book, so that threads need no lock. What a part has found is mixed into
 * `result`, which must be the same with and without a profiler. Nothing here uses the heap but the calls under test. */
#ifndef SEQUENCES_H
#define SEQUENCES_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

/* To standard error, without the heap. */
static inline void complain(const char *file, int line, const char *what)
{
    char text[256];
    int n = snprintf(text, sizeof text, "%s:%d: %s: error %d\n", file, line, what, errno);
    if (write(STDERR_FILENO, text, (size_t)n) < 0)
        _exit(4);
    _exit(3);
}

#define MUST(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            complain(__FILE__, __LINE__, #condition);                                                                  \
    } while (0)

enum { N_BLOCKS = 48, N_WALKERS = 4 };

struct block {
    unsigned char *at;
    size_t bytes, usable;
    unsigned char fill;
    bool is_custom; /* lies in memory of our own and was announced */
};

struct walker {
    uint64_t state, result;
    unsigned which;
    struct block blocks[N_BLOCKS];
    int64_t heap_bytes, heap_blocks; /* of it live */
};

extern const char *last_step; /* of the main thread, for the log */

/* Below n. */
static inline uint64_t chance(struct walker *w, uint64_t n)
{
    w->state ^= w->state << 13;
    w->state ^= w->state >> 7;
    w->state ^= w->state << 17;
    return (w->state >> 11) % n;
}

void found(struct walker *w, uint64_t what);

void heap_step(struct walker *w);

/* Mappings are the main thread's alone. `resident` is what the kernel says of them (/proc/self/pagemap). */
void maps_step(struct walker *w);
uint64_t maps_resident(void);
void maps_in_child(void); /* what is shared is the parent's to write to */

/* CUDA, on the simulation, which keeps its own book. */
void cuda_step(struct walker *w);
size_t cuda_tell(char *text, size_t size); /* "KIND BYTES BLOCKS " of each kind */

#endif
