/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A thread in the midst of a region and of a dlopen, and a fork: it is not there in the child, whose first new thread
 * takes its place. That one allocates and opens another library; then the first thread goes on in the parent. */
#include <dlfcn.h>
#include <jmassif.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int inside[2], go_on[2];

/* What the slow library's constructor calls. */
void wait_inside(void);
void wait_inside(void)
{
    char c = 0;
    if (write(inside[1], &c, 1) != 1 || read(go_on[0], &c, 1) != 1)
        abort();
}

static void *in_the_midst(void *library)
{
    JMASSIF_REGION_BEGIN("of the parent");
    if (!dlopen(library, RTLD_NOW))
        abort();
    JMASSIF_REGION_END("of the parent");
    return NULL;
}

static __attribute__((noinline)) void *of_the_child(size_t bytes)
{
    return malloc(bytes);
}

/* Further in on the stack than the other thread's call, of which the C library gives the child's thread the stack too.
 */
static void *in_its_place(void *library)
{
    volatile char room[100000];
    room[0] = 0;
    memset(of_the_child(50000), 1, 50000);
    if (!dlopen(library, RTLD_NOW))
        abort();
    return NULL;
}

static void run(pthread_t *thread, void *(*what)(void *), char *library)
{
    if (pthread_create(thread, NULL, what, library))
        abort();
}

int main(int argc, char **argv)
{
    pthread_t thread;
    char c = 0;
    int status;
    if (argc != 3 || pipe(inside) || pipe(go_on))
        return 1;
    run(&thread, in_the_midst, argv[1]);
    if (read(inside[0], &c, 1) != 1)
        return 1;
    if (fork() == 0) {
        run(&thread, in_its_place, argv[2]);
        pthread_join(thread, NULL);
        _exit(7);
    }
    wait(&status);
    if (write(go_on[1], &c, 1) != 1)
        return 1;
    pthread_join(thread, NULL);
    printf("%d\n", WEXITSTATUS(status));
    return 0;
}
