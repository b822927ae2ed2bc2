/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A storm of small allocations:  cuda_storm N [SEED]. N events on up to 1024 live blocks, each an
 * allocation or a free of heap or device memory, drawn by a generator of its own; then all is freed.
 * Prints how many of each there were, and their largest sums. */
#include "program.h"

enum { MOST_LIVE = 1024 };

struct side {
    void *blocks[MOST_LIVE];
    size_t bytes[MOST_LIVE], live_bytes, peak_bytes;
    unsigned long n_allocations, n_frees;
};

static struct side host, device;
static unsigned long long state;

/* Knuth's MMIX constants; the upper bits are the random ones. */
static unsigned draw(unsigned below)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)(state >> 33) % below;
}

static NOINLINE void *take_host(size_t bytes)
{
    return malloc(bytes);
}

static NOINLINE void *take_device(size_t bytes)
{
    void *pointer;
    MUST(cudaMalloc(&pointer, bytes));
    return pointer;
}

static void event(struct side *side, unsigned slot)
{
    if (side->blocks[slot]) {
        if (side == &host)
            free(side->blocks[slot]);
        else
            MUST(cudaFree(side->blocks[slot]));
        side->blocks[slot] = NULL;
        side->live_bytes -= side->bytes[slot];
        side->n_frees++;
        return;
    }
    size_t bytes = 1 + draw(1u << (4 + draw(13)));
    side->blocks[slot] = side == &host ? take_host(bytes) : take_device(bytes);
    side->bytes[slot] = bytes;
    side->live_bytes += bytes;
    side->n_allocations++;
    if (side->live_bytes > side->peak_bytes)
        side->peak_bytes = side->live_bytes;
}

static void print_side(const char *name, const struct side *side)
{
    printf("%s_allocations %lu\n%s_frees %lu\n%s_peak %zu\n", name, side->n_allocations, name, side->n_frees, name,
           side->peak_bytes);
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: cuda_storm N [SEED]\n");
        return 2;
    }
    unsigned long n = strtoul(argv[1], NULL, 10);
    state = argc == 3 ? strtoull(argv[2], NULL, 10) : 1;
    for (unsigned long i = 0; i < n; i++) {
        struct side *side = draw(2) ? &host : &device;
        event(side, draw(MOST_LIVE));
    }
    for (unsigned slot = 0; slot < MOST_LIVE; slot++) {
        if (host.blocks[slot])
            event(&host, slot);
        if (device.blocks[slot])
            event(&device, slot);
    }
    print_side("host", &host);
    print_side("device", &device);
    return 0;
}
