// SPDX-License-Identifier: GPL-2.0-or-later
//
// A library that allocates while it is loaded, while the loader looks for what is called for the first time, and while
// it is unloaded; and a program that loads it again and again, and in a forked child. With -DLIBRARY the library.

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(LIBRARY)

static void implementation(void) {}

static __attribute__((noinline)) void choose(void)
{
    free(malloc(100));
    __asm__ volatile("");
}

static void (*resolve(void))(void)
{
    choose();
    return implementation;
}

void lazily(void) __attribute__((ifunc("resolve")));

static __attribute__((constructor)) void constructed(void)
{
    free(malloc(200));
    __asm__ volatile("");
}

static __attribute__((destructor)) void destructed(void)
{
    free(malloc(300));
    __asm__ volatile("");
}

void function(void)
{
    lazily();
    free(malloc(400));
    __asm__ volatile("");
}

#else

static __attribute__((noinline)) void load(const char *path)
{
    void *library = dlopen(path, RTLD_LAZY);
    ((void (*)(void))dlsym(library, "function"))();
    dlclose(library);
    __asm__ volatile("");
}

static void *thread(void *path)
{
    free(malloc(500));
    return NULL;
}

int main(int n, char **args)
{
    pthread_t started;
    for (int i = 0; i < 10; i++)
        load(args[1]);
    pthread_create(&started, NULL, thread, NULL);
    pthread_join(started, NULL);
    if (fork() == 0) {
        load(args[1]);
        exit(0);
    }
    wait(NULL);
    return 0;
}

#endif
