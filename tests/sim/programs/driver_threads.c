/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads that take and give driver memory of the simulated board at once, each through descriptors of its own:
 *
 *   driver_threads ROUNDS SEED [--log=FILE]
 *
 * In a round each of four threads does a hundred random operations; then all wait, the board's figure must be the sum
 * of what the threads hold, and the log gets a line "ROUND COMMITTED 0 round". As in driver_random, regions "books-K"
 * begin and end then. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "random/random.h"

enum { N_THREADS = 4, N_SLOTS = 32, N_OPERATIONS = 100, MAX_PAGES = 64, TOLD_OF_ONE_NAME = 256 };

void jmassif_region_begin(const char *text) __attribute__((weak));
void jmassif_region_end(const char *text) __attribute__((weak));

struct slot {
    uint32_t handle;
    int fd;
    void *at;
    uint64_t bytes;
};

struct worker {
    pthread_t thread;
    int device;
    uint32_t client, parent;
    uint64_t state, held;
    struct slot slots[N_SLOTS];
};

static struct worker workers[N_THREADS];
static pthread_barrier_t begin, end;
static uint64_t n_rounds;
static enum release on;
static int board_fd;

static uint64_t chance_of(struct worker *worker, uint64_t n)
{
    worker->state ^= worker->state << 13;
    worker->state ^= worker->state >> 7;
    worker->state ^= worker->state << 17;
    return (worker->state >> 11) % n;
}

/* nvmap: the size goes in where the handle comes out, so a call that is mixed up with another thread's is noticed. */
static void nvmap_take(struct worker *worker, struct slot *slot)
{
    static const uint32_t ALLOC[] = {0x40104e03, 0x40104e03, 0x40144e03, 0x40204e03};
    uint64_t both = slot->bytes;
    MUST(ioctl(worker->device, 0xc0084e01, &both) == 0);
    slot->handle = (uint32_t)both;
    uint32_t alloc[8] = {slot->handle, 1u << 30, 3, 4096};
    MUST(ioctl(worker->device, ALLOC[on], alloc) == 0);
    uint32_t get_fd[2] = {0, slot->handle};
    if (chance_of(worker, 2)) {
        MUST(ioctl(worker->device, 0xc0084e0f, get_fd) == 0);
        slot->fd = (int)get_fd[0];
        slot->at = mmap(NULL, slot->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, slot->fd, 0);
        MUST(slot->at != MAP_FAILED);
    }
}

/* In any order; the last of them lets the memory go. */
static void nvmap_give(struct worker *worker, struct slot *slot)
{
    bool free_first = chance_of(worker, 2);
    if (free_first)
        MUST(ioctl(worker->device, 0x00004e04, (unsigned long)slot->handle) == 0);
    if (slot->at) {
        MUST(close(slot->fd) == 0);
        MUST(munmap(slot->at, slot->bytes) == 0);
    }
    if (!free_first)
        MUST(ioctl(worker->device, 0x00004e04, (unsigned long)slot->handle) == 0);
}

/* The resource manager: its structure is in and out as well, and points to another. */
static uint32_t rm_alloc(struct worker *worker, uint32_t parent, uint32_t class, uint64_t bytes)
{
    uint64_t parameters[16] = {0}, both[6] = {worker->client | (uint64_t)parent << 32, (uint64_t) class << 32};
    parameters[3] = (uint64_t)1 << 23; /* attributes: small pages */
    parameters[8] = bytes;
    both[2] = (uintptr_t)parameters;
    MUST(ioctl(worker->device, 0xc030462b, both) == 0 && (uint32_t)both[5] == 0);
    return (uint32_t)both[1];
}

static void rm_take(struct worker *worker, struct slot *slot)
{
    slot->handle = rm_alloc(worker, worker->parent, chance_of(worker, 2) ? 0x40 : 0x3e, slot->bytes);
}

static void rm_give(struct worker *worker, struct slot *slot)
{
    uint32_t both[4] = {worker->client, worker->parent, slot->handle, 1};
    MUST(ioctl(worker->device, 0xc0104629, both) == 0 && both[3] == 0);
}

static void operation(struct worker *worker)
{
    struct slot *slot = &worker->slots[chance_of(worker, N_SLOTS)];
    if (slot->bytes) {
        (on <= R38 ? nvmap_give : rm_give)(worker, slot);
        worker->held -= slot->bytes;
        *slot = (struct slot){0};
        return;
    }
    slot->bytes = (chance_of(worker, MAX_PAGES) + 1) * PAGE;
    (on <= R38 ? nvmap_take : rm_take)(worker, slot);
    worker->held += slot->bytes;
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    worker->device = open(on <= R38 ? "/dev/nvmap" : "/dev/nvidiactl", O_RDWR | O_CLOEXEC);
    MUST(worker->device >= 0);
    if (on > R38) {
        worker->client = rm_alloc(worker, 0, 0x41, 0);
        worker->parent = rm_alloc(worker, worker->client, 0x80, 0);
    }
    for (uint64_t round = 0; round < n_rounds; round++) {
        for (int i = 0; i < N_OPERATIONS; i++)
            operation(worker);
        pthread_barrier_wait(&begin);
        pthread_barrier_wait(&end);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    struct jmsim_books books;
    bool logs = argc == 4 && strncmp(argv[3], "--log=", 6) == 0;
    if (argc != 3 && !logs) {
        fprintf(stderr, "usage: driver_threads ROUNDS SEED [--log=FILE]\n");
        return 2;
    }
    int log = logs ? open(argv[3] + 6, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : -1;
    MUST(!logs || log >= 0);
    board_fd = open(JMSIM_BOARD_NODE, O_RDWR | O_CLOEXEC);
    MUST(board_fd >= 0 && ioctl(board_fd, JMSIM_BOARD_BOOKS, &books) == 0);
    on = books.release;
    n_rounds = strtoull(argv[1], NULL, 10);
    pthread_barrier_init(&begin, NULL, N_THREADS + 1);
    pthread_barrier_init(&end, NULL, N_THREADS + 1);
    for (int i = 0; i < N_THREADS; i++) {
        workers[i].state = (strtoull(argv[2], NULL, 10) * N_THREADS + (uint64_t)i + 1) * 0x9e3779b97f4a7c15u;
        MUST(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
    }
    for (uint64_t round = 0; round < n_rounds; round++) {
        char name[32], line[96];
        uint64_t held = 0;
        pthread_barrier_wait(&begin);
        MUST(ioctl(board_fd, JMSIM_BOARD_BOOKS, &books) == 0);
        snprintf(name, sizeof name, "books-%llu", (unsigned long long)(round / TOLD_OF_ONE_NAME));
        if (jmassif_region_begin) {
            jmassif_region_begin(name);
            jmassif_region_end(name);
        }
        for (int i = 0; i < N_THREADS; i++)
            held += workers[i].held;
        if (books.committed_bytes != held) {
            fprintf(stderr, "in round %llu the board says %llu; the threads hold %llu\n", (unsigned long long)round,
                    (unsigned long long)books.committed_bytes, (unsigned long long)held);
            return 1;
        }
        int length = snprintf(line, sizeof line, "%llu %llu 0 round\n", (unsigned long long)round,
                              (unsigned long long)books.committed_bytes);
        if (log >= 0)
            MUST(write(log, line, (size_t)length) == length);
        pthread_barrier_wait(&end);
    }
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    return 0;
}
