// SPDX-License-Identifier: GPL-2.0-or-later
//
// Threads that free, and resize, what another thread has allocated. Barriers make the order of what matters the same in
// every run.

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_THREADS 4
#define N_BLOCKS  200
#define N_ROUNDS  3

static pthread_barrier_t barrier;
static char *blocks[N_THREADS][N_BLOCKS];
static size_t wrong[N_THREADS];

static void *work(void *argument)
{
    size_t me = (size_t)argument, next = (me + 1) % N_THREADS;
    for (int round = 0; round < N_ROUNDS; round++) {
        for (size_t i = 0; i < N_BLOCKS; i++) {
            blocks[me][i] = malloc(16 + i * (me + 1));
            blocks[me][i][0] = (char)me;
        }
        pthread_barrier_wait(&barrier);
        for (size_t i = 0; i < N_BLOCKS; i += 2)
            blocks[next][i] = realloc(blocks[next][i], 5000 + i);
        pthread_barrier_wait(&barrier); // everything has its largest size here
        for (size_t i = 0; i < N_BLOCKS; i++) {
            wrong[me] += blocks[next][i][0] != (char)next;
            free(blocks[next][i]);
        }
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[N_THREADS];
    pthread_barrier_init(&barrier, NULL, N_THREADS);
    for (size_t i = 0; i < N_THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    size_t sum = 0;
    for (size_t i = 0; i < N_THREADS; i++) {
        pthread_join(threads[i], NULL);
        sum += wrong[i];
    }
    printf("%zu wrong\n", sum);
    return 0;
}
