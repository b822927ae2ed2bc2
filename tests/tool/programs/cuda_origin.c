/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who calls dlopen decides where it looks: $ORIGIN and a library's own search path are the caller's. Compiled three
 * times: with -DINNER the library inner/liborigin_inner.so, with -DOUTER the library liborigin_outer.so beside that
 * directory, which alone can find it, and with neither the program:  cuda_origin LIBORIGIN_OUTER. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

#if defined(INNER)

int answer(void)
{
    return 42;
}

#elif defined(OUTER)

static int ask(const char *name)
{
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    int (*answer)(void);
    if (!library)
        return -1;
    *(void **)&answer = dlsym(library, "answer");
    return answer ? answer() : -2;
}

int by_search_path(void)
{
    return ask("liborigin_inner.so");
}
int by_origin(void)
{
    return ask("$ORIGIN/inner/liborigin_inner.so");
}

#else

int main(int argc, char **argv)
{
    int (*by_search_path)(void), (*by_origin)(void);
    void *outer = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!outer) {
        fprintf(stderr, "usage: cuda_origin LIBORIGIN_OUTER\n");
        return 2;
    }
    *(void **)&by_search_path = dlsym(outer, "by_search_path");
    *(void **)&by_origin = dlsym(outer, "by_origin");
    printf("not found from here: %d\n", dlopen("liborigin_inner.so", RTLD_NOW) == NULL);
    printf("by search path: %d\n", by_search_path());
    printf("by $ORIGIN: %d\n", by_origin());
    printf("in another namespace: %d\n", dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW) != NULL);
    return 0;
}

#endif
