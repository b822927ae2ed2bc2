// SPDX-License-Identifier: GPL-2.0-or-later
/* What trains.py is, in C: TRAINS LOG SEED. It starts in a tenth of the time, so that early moments are met too. */

#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "../../../jmassif/jmassif.h"
#include "../../sim/board/jmsim_board.h"
#include "../../sim/cuda_abi.h"

#define N_WORKERS 2
#define N_KEPT    16
#define SEGMENT   ((size_t)2 << 20)
#define TENSOR    ((size_t)64 << 10)

static int log_file;
static uint64_t state;

static void note(const char *what, uint64_t n_bytes)
{
    struct timespec now;
    char line[128];
    clock_gettime(CLOCK_MONOTONIC, &now);
    int n = snprintf(line, sizeof line, "%" PRIu64 " %d %s %" PRIu64 "\n",
                     (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec, (int)getpid(), what, n_bytes);
    if (write(log_file, line, (size_t)n) != n)
        exit(1);
}

static void note_committed(void)
{
    struct jmsim_books books;
    int board = open(JMSIM_BOARD_NODE, O_RDWR | O_CLOEXEC);
    if (board < 0 || ioctl(board, JMSIM_BOARD_BOOKS, &books) != 0)
        exit(1);
    close(board);
    note("committed", books.process_bytes);
}

static unsigned chosen(unsigned below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % below;
}

static char *load_batch(size_t n_bytes)
{
    return malloc(n_bytes);
}

static void make_tensor(char *at)
{
    JMASSIF_TENSOR(at, TENSOR);
}

static void work(int out)
{
    char *kept[N_KEPT] = {NULL};
    uint64_t total = 0;
    for (size_t number = 0;; number++) {
        size_t n_bytes = 100000 + number % 1000;
        char **slot = &kept[number % N_KEPT];
        free(*slot);
        *slot = load_batch(n_bytes);
        memset(*slot, 1, n_bytes);
        total += n_bytes;
        note("load_batch", total);
        if (write(out, "b", 1) != 1)
            exit(1);
        usleep(chosen(50) ? 5000 : 2000000);
    }
}

int main(int argc, char **argv)
{
    int batches[N_WORKERS];
    (void)argc;
    log_file = open(argv[1], O_WRONLY | O_CREAT | O_APPEND, 0600);
    for (unsigned worker = 0; worker < N_WORKERS; worker++) {
        int ends[2];
        if (log_file < 0 || pipe(ends) != 0)
            return 1;
        state = strtoull(argv[2], NULL, 10) * N_WORKERS + worker;
        if (fork() == 0)
            work(ends[1]);
        close(ends[1]); /* so that this one ends if a worker does */
        batches[worker] = ends[0];
    }
    char *segment[SEGMENT / TENSOR] = {NULL};
    uint64_t total = 0;
    for (size_t number = 0;; number++) {
        char ready;
        for (unsigned worker = 0; worker < N_WORKERS; worker++)
            if (read(batches[worker], &ready, 1) != 1)
                return 1;
        if (number % 16 == 0 && number < 1000) {
            if (cudaMalloc((void **)&segment[0], SEGMENT) != 0)
                return 1;
            note_committed();
        }
        char *at = segment[0] + number % 16 * TENSOR;
        make_tensor(at);
        total += TENSOR;
        note("make_tensor", total);
        if (number >= 1000)
            JMASSIF_TENSOR_FREED(at);
    }
}
