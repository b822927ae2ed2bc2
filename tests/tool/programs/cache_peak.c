/* SPDX-License-Identifier: GPL-2.0-or-later */
/* usage: cache_peak SEED
 * A caching allocator that never gives a segment back hands out parts of them at random, to two places; the host's
 * memory changes meanwhile, and sometimes a snapshot is asked for. Prints what was held when the device's memory was
 * largest, of these moments when most of it was handed out, of these the first: bytes of both places, of the cache, of
 * the host. */
#include <stdio.h>
#include <stdlib.h>

#include "jmassif.h"

#define SEGMENT    ((size_t)4 << 20)
#define PARTS      8
#define N_SEGMENTS 6
#define N_HOST     16
#define N_EVENTS   1500

int cudaMalloc(void **address, size_t bytes);

static char *segments[N_SEGMENTS];
static int n_segments;
static int place[N_SEGMENTS * PARTS]; /* of a part: 0 none, else whose it is */
static void *host[N_HOST];
static size_t host_sizes[N_HOST];

struct held {
    size_t device, by_place[3], host;
};
static struct held now, peak;

static unsigned random_number(unsigned below)
{
    static unsigned long state;
    if (!state)
        state = below; /* the seed, the first time */
    state = state * 6364136223846793005ul + 1442695040888963407ul;
    return (unsigned)(state >> 33) % (below ? below : 1);
}

static void happened(void)
{
    size_t used = now.by_place[1] + now.by_place[2], used_at_peak = peak.by_place[1] + peak.by_place[2];
    if (now.device > peak.device || (now.device == peak.device && used > used_at_peak))
        peak = now;
}

__attribute__((noinline)) static void hand_out_here(char *at)
{
    JMASSIF_TENSOR(at, SEGMENT / PARTS);
}

__attribute__((noinline)) static void hand_out_there(char *at)
{
    JMASSIF_TENSOR(at, SEGMENT / PARTS);
}

__attribute__((noinline)) static void *of_host(size_t bytes)
{
    return malloc(bytes);
}

static void more_segments(void)
{
    void *address;
    if (n_segments == N_SEGMENTS || cudaMalloc(&address, SEGMENT))
        return;
    segments[n_segments++] = address;
    now.device += SEGMENT;
    happened();
}

static void change_part(void)
{
    unsigned part = random_number((unsigned)n_segments * PARTS);
    char *at = segments[part / PARTS] + part % PARTS * (SEGMENT / PARTS);
    if (place[part]) {
        JMASSIF_TENSOR_FREED(at);
        now.by_place[place[part]] -= SEGMENT / PARTS;
        place[part] = 0;
    } else {
        place[part] = 1 + (int)random_number(2);
        if (place[part] == 1)
            hand_out_here(at);
        else
            hand_out_there(at);
        now.by_place[place[part]] += SEGMENT / PARTS;
    }
    happened();
}

static void change_host(void)
{
    unsigned i = random_number(N_HOST);
    if (host[i]) {
        free(host[i]);
        host[i] = NULL;
        now.host -= host_sizes[i];
    } else {
        host_sizes[i] = 16 * (1 + random_number(1000));
        host[i] = of_host(host_sizes[i]);
        now.host += host_sizes[i];
    }
}

int main(int argc, char **argv)
{
    random_number((unsigned)atoi(argv[argc - 1]));
    more_segments();
    for (int i = 0; i < N_EVENTS; i++) {
        unsigned choice = random_number(100);
        if (choice == 0 && i < N_EVENTS / 2)
            more_segments();
        else if (choice < 3)
            JMASSIF_SNAPSHOT();
        else if (choice < 40)
            change_host();
        else
            change_part();
    }
    printf("%zu %zu %zu %zu\n", peak.by_place[1], peak.by_place[2], peak.device - peak.by_place[1] - peak.by_place[2],
           peak.host);
    return 0;
}
