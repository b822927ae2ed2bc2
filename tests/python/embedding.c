// SPDX-License-Identifier: GPL-2.0-or-later
//
// usage: embedding LIBPYTHON DIRECTORY
// A program that loads an interpreter at run time, and starts it twice: first on the main thread, then, after it has
// come to its end, on another one. Exit status 77: there is no such library.

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void (*initialize)(int);
static void (*finalize)(void);
static int (*run_string)(const char *, void *);
static const char *directory;

void native(size_t bytes)
{
    void *p = malloc(bytes);
    __asm__ volatile("" : : "r"(p));
}

static void interpret(size_t bytes)
{
    char code[1000];
    snprintf(code, sizeof code,
             "import sys; sys.path.insert(0, '%s')\n"
             "from witness import here\n"
             "def allocate():\n"
             "    return bytearray(here((), iter([%zu])))\n"
             "held = allocate()\n",
             directory, bytes);
    initialize(0);
    if (run_string(code, NULL) != 0)
        exit(1);
}

static void *on_thread(void *unused)
{
    interpret(1001 * 256);
    native(1002 * 256);
    finalize();
    return unused;
}

int main(int argc, char **argv)
{
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
    pthread_t thread;
    if (argc < 3 || !library)
        return 77;
    directory = argv[2];
    initialize = (void (*)(int))dlsym(library, "Py_InitializeEx");
    finalize = (void (*)(void))dlsym(library, "Py_Finalize");
    run_string = (int (*)(const char *, void *))dlsym(library, "PyRun_SimpleStringFlags");
    native(1003 * 256);
    interpret(1004 * 256);
    native(1005 * 256);
    finalize();
    native(1006 * 256);
    pthread_create(&thread, NULL, on_thread, NULL);
    pthread_join(thread, NULL);
    native(1007 * 256);
    return 0;
}
