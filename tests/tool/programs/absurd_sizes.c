// SPDX-License-Identifier: GPL-2.0-or-later
//
// Sizes that no allocator can serve: nothing is returned, errno says why, and what was there stays.

#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void say(const char *what, const void *p)
{
    printf("%s: %s, %s\n", what, p ? "memory" : "nothing", errno == ENOMEM ? "ENOMEM" : errno ? "another" : "no errno");
    errno = 0;
}

int main(void)
{
    volatile size_t minus_one = SIZE_MAX, half = SIZE_MAX / 2 + 1, more_than_there_is = (size_t)1 << 46;
    void *kept = malloc(4321);
    errno = 0;
    say("malloc -1", malloc(minus_one));
    say("malloc half", malloc(half));
    say("malloc 64 TiB", malloc(more_than_there_is));
    say("calloc -1", calloc(1, minus_one));
    say("calloc half", calloc(half, 1));
    say("realloc half", realloc(kept, half));
    say("realloc 64 TiB", realloc(kept, more_than_there_is));
    say("memalign half", memalign(64, half));
    say("aligned_alloc 64 TiB", aligned_alloc(64, more_than_there_is));
    void *p = NULL;
    printf("posix_memalign: %s\n", posix_memalign(&p, 64, half) == ENOMEM ? "ENOMEM" : "something else");
    printf("usable size of nothing: %zu\n", malloc_usable_size(NULL));
    free(malloc(1000));
    free(kept);
    return 0;
}
