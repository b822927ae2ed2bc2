// SPDX-License-Identifier: GPL-2.0-or-later
//
// usage: crashes WAY: ends by a signal, in one of several places.

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static volatile long zero;

static __attribute__((noinline)) void crash(int n)
{
    if (n)
        crash(n - 1);
    else
        *(volatile int *)zero = 1;
    __asm__ volatile("");
}

static __attribute__((noinline)) void call_nothing(void (*nothing)(void))
{
    nothing();
    __asm__ volatile("");
}

static int compare(const void *a, const void *b)
{
    crash(0);
    return 0;
}

static void handler(int number)
{
    crash(1);
    __asm__ volatile("");
}

static void *thread(void *unused)
{
    crash(1);
    __asm__ volatile("");
    return NULL;
}

int main(int n, char **args)
{
    int numbers[2] = {2, 1};
    pthread_t started;
    if (strcmp(args[1], "function") == 0) {
        crash(3);
    } else if (strcmp(args[1], "nothing") == 0) {
        call_nothing((void (*)(void))zero);
    } else if (strcmp(args[1], "callback") == 0) {
        qsort(numbers, 2, sizeof *numbers, compare);
    } else if (strcmp(args[1], "handler") == 0) {
        signal(SIGUSR1, handler);
        raise(SIGUSR1);
    } else if (strcmp(args[1], "thread") == 0) {
        pthread_create(&started, NULL, thread, NULL);
        pthread_join(started, NULL);
    } else {
        abort();
    }
    return 0;
}
