// SPDX-License-Identifier: GPL-2.0-or-later
//
// A hundred threads that allocate before and after they have a name, and free a part of it. They come in waves, so that
// later ones get the identities and stacks of earlier ones. Prints what each name has allocated in all and still holds.

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WAVES 10
#define EACH  10

typedef struct {
    int number;
    char name[16];
    size_t allocated, held;
    pthread_barrier_t *all_run;
} Worker;

static void *ask(Worker *worker, size_t bytes)
{
    worker->allocated += bytes;
    worker->held += bytes;
    return malloc(bytes);
}

// The C library's way to name another thread.
static void name_by_file(const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%ld/comm", syscall(SYS_gettid));
    int file = open(path, O_RDWR);
    if (file < 0 || write(file, name, strlen(name)) < 0)
        abort();
    close(file);
}

static void *work(void *argument)
{
    Worker *worker = argument;
    ask(worker, 1000 + worker->number);
    pthread_barrier_wait(worker->all_run);
    if (worker->number % 3 == 0)
        prctl(PR_SET_NAME, worker->name);
    else if (worker->number % 3 == 1)
        name_by_file(worker->name);
    size_t bytes = 100 * worker->number + 7;
    void *passing = ask(worker, bytes);
    ask(worker, 3 * worker->number + 1);
    free(passing);
    worker->held -= bytes;
    return NULL;
}

int main(void)
{
    static Worker workers[WAVES * EACH];
    for (int wave = 0; wave < WAVES; wave++) {
        pthread_t threads[EACH];
        pthread_barrier_t all_run;
        pthread_barrier_init(&all_run, NULL, EACH + 1); // and this one, which gives them names while they are there
        for (int i = 0; i < EACH; i++) {
            Worker *worker = &workers[wave * EACH + i];
            worker->number = wave * EACH + i;
            worker->all_run = &all_run;
            // Every tenth shares its name with nine others, and the program's own name is no less a name.
            snprintf(worker->name, sizeof worker->name, i == 9 ? "named_threads" : "worker %d", worker->number);
            pthread_create(&threads[i], NULL, work, worker);
            if (worker->number % 3 == 2)
                pthread_setname_np(threads[i], worker->name);
        }
        pthread_barrier_wait(&all_run);
        for (int i = 0; i < EACH; i++)
            pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < WAVES * EACH; i++)
        printf("%s\t%zu\t%zu\n", workers[i].name, workers[i].allocated, workers[i].held);
    return 0;
}
