/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A random walk over heap, device, managed and pinned memory, with a log of every event for a replay by brute force:
 *
 *   peaks EVENTS SEED LOG
 *
 * The log is written from a static buffer by write(2), so it costs nothing that a profiler would see. Each event names
 * the site that answers for the block, the block's slot, the bytes asked for and the bytes that malloc says are usable.
 * The walk goes up and down at random, in spells, so that it passes many maxima of the total and of either side. */
#include <fcntl.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "jmassif.h"

#define NOINLINE __attribute__((noinline))

int cuInit(unsigned int flags);
int cuCtxCreate_v2(void **context, unsigned int flags, int device);
int cuMemAlloc_v2(uint64_t *address, size_t bytes);
int cuMemAllocManaged(uint64_t *address, size_t bytes, unsigned int flags);
int cuMemFree_v2(uint64_t address);
int cuMemAllocHost_v2(void **pointer, size_t bytes);
int cuMemFreeHost(void *pointer);

enum operation { OBTAIN, RESIZE, RELEASE };
enum memory { HEAP, DEVICE, MANAGED, PINNED };

struct event {
    uint8_t operation, site;
    uint16_t slot;
    uint32_t padding;
    uint64_t bytes, usable;
};

static struct event events[4096];
static unsigned n_events;
static int log_fd;

static void flush(void)
{
    ssize_t length = (ssize_t)(n_events * sizeof *events);
    if (write(log_fd, events, (size_t)length) != length)
        abort();
    n_events = 0;
}

static void say(enum operation operation, unsigned site, unsigned slot, size_t bytes, size_t usable)
{
    events[n_events++] = (struct event){(uint8_t)operation, (uint8_t)site, (uint16_t)slot, 0, bytes, usable};
    if (n_events == sizeof events / sizeof *events)
        flush();
}

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        if ((call) != 0)                                                                                               \
            abort();                                                                                                   \
    } while (0)

/* The sites: functions that differ in nothing but their names. */
#define HEAP_SITE(n)                                                                                                   \
    static NOINLINE void *heap_##n(void *old, size_t bytes)                                                            \
    {                                                                                                                  \
        void *volatile pointer = old ? realloc(old, bytes) : malloc(bytes);                                            \
        return pointer;                                                                                                \
    }
#define DEVICE_SITE(n)                                                                                                 \
    static NOINLINE void *device_##n(void *old, size_t bytes)                                                          \
    {                                                                                                                  \
        uint64_t address;                                                                                              \
        (void)old;                                                                                                     \
        MUST(cuMemAlloc_v2(&address, bytes));                                                                          \
        return (void *)(uintptr_t)address;                                                                             \
    }
#define MANAGED_SITE(n)                                                                                                \
    static NOINLINE void *managed_##n(void *old, size_t bytes)                                                         \
    {                                                                                                                  \
        uint64_t address;                                                                                              \
        (void)old;                                                                                                     \
        MUST(cuMemAllocManaged(&address, bytes, 1));                                                                   \
        return (void *)(uintptr_t)address;                                                                             \
    }
#define PINNED_SITE(n)                                                                                                 \
    static NOINLINE void *pinned_##n(void *old, size_t bytes)                                                          \
    {                                                                                                                  \
        void *pointer;                                                                                                 \
        (void)old;                                                                                                     \
        MUST(cuMemAllocHost_v2(&pointer, bytes));                                                                      \
        return pointer;                                                                                                \
    }
HEAP_SITE(0)
HEAP_SITE(1)
HEAP_SITE(2)
HEAP_SITE(3)
HEAP_SITE(4)
DEVICE_SITE(0)
DEVICE_SITE(1)
DEVICE_SITE(2)
MANAGED_SITE(0)
PINNED_SITE(0)
PINNED_SITE(1)

static const struct {
    void *(*take)(void *, size_t);
    enum memory memory;
} sites[] = {
    {heap_0, HEAP},       {heap_1, HEAP},     {heap_2, HEAP},     {heap_3, HEAP},
    {heap_4, HEAP},       {device_0, DEVICE}, {device_1, DEVICE}, {device_2, DEVICE},
    {managed_0, MANAGED}, {pinned_0, PINNED}, {pinned_1, PINNED},
};

enum { N_HEAP_SITES = 5, N_SITES = sizeof sites / sizeof *sites, N_SLOTS = 2000 };

static struct {
    void *pointer;
    enum memory memory;
} slots[N_SLOTS];

static uint64_t state;

/* Knuth's MMIX constants; the upper bits are the random ones. */
static unsigned draw(unsigned below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % below;
}

/* Mostly small, as programs ask for it; nothing at all now and then. */
static size_t draw_bytes(void)
{
    return draw(50) == 0 ? 0 : draw(1u << (3 + draw(14)));
}

static size_t usable(const void *pointer, enum memory memory)
{
    return memory == HEAP ? malloc_usable_size((void *)pointer) : 0;
}

static void obtain(unsigned slot)
{
    unsigned site = draw(2) ? draw(N_HEAP_SITES) : N_HEAP_SITES + draw(N_SITES - N_HEAP_SITES);
    size_t bytes = draw_bytes() + (sites[site].memory != HEAP);
    slots[slot].memory = sites[site].memory;
    slots[slot].pointer = sites[site].take(NULL, bytes);
    say(OBTAIN, site, slot, bytes, usable(slots[slot].pointer, sites[site].memory));
}

static void resize(unsigned slot)
{
    unsigned site = draw(N_HEAP_SITES);
    size_t bytes = 1 + draw_bytes();
    slots[slot].pointer = sites[site].take(slots[slot].pointer, bytes);
    say(RESIZE, site, slot, bytes, usable(slots[slot].pointer, HEAP));
}

static void release(unsigned slot)
{
    if (slots[slot].memory == HEAP)
        free(slots[slot].pointer);
    else if (slots[slot].memory == PINNED)
        MUST(cuMemFreeHost(slots[slot].pointer));
    else
        MUST(cuMemFree_v2((uintptr_t)slots[slot].pointer));
    slots[slot].pointer = NULL;
    say(RELEASE, 0, slot, 0, 0);
}

int main(int argc, char **argv)
{
    void *context;
    if (argc != 4) {
        fprintf(stderr, "usage: peaks EVENTS SEED LOG\n");
        return 2;
    }
    unsigned long n = strtoul(argv[1], NULL, 10);
    state = strtoull(argv[2], NULL, 10);
    log_fd = open(argv[3], O_WRONLY | O_CREAT | O_TRUNC, 0600);
    MUST(log_fd < 0);
    MUST(cuInit(0));
    MUST(cuCtxCreate_v2(&context, 0, 0));
    JMASSIF_MARK("begin");
    unsigned spell = 0, eagerness = 0;
    for (unsigned long i = 0; i < n; i++) {
        if (spell-- == 0) {
            spell = draw(3000);
            eagerness = 5 + draw(91);
        }
        unsigned slot = draw(N_SLOTS);
        if (!slots[slot].pointer) {
            if (draw(100) < eagerness)
                obtain(slot);
            else
                i--; /* no event */
        } else if (slots[slot].memory == HEAP && draw(10) == 0) {
            resize(slot);
        } else if (draw(100) >= eagerness) {
            release(slot);
        } else {
            i--;
        }
    }
    flush();
    return 0;
}
