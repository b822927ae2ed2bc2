/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls of functions that a simulated library has and does not simulate. They fail, and when the process ends their
 * names and numbers are appended to the file that JMSIM_UNKNOWN names: "FUNCTION CALLS", one a line. */
#ifndef JMSIM_UNKNOWN_H
#define JMSIM_UNKNOWN_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    const char *name; /* a constant */
    unsigned long calls;
} unknown_functions[256];
static pthread_mutex_t unknown_lock = PTHREAD_MUTEX_INITIALIZER;

static void unknown_count(const char *name)
{
    size_t i = 0;
    pthread_mutex_lock(&unknown_lock);
    while (i < 255 && unknown_functions[i].name && strcmp(unknown_functions[i].name, name) != 0)
        i++;
    unknown_functions[i].name = name;
    unknown_functions[i].calls++;
    pthread_mutex_unlock(&unknown_lock);
}

__attribute__((destructor)) static void unknown_write(void)
{
    const char *path = getenv("JMSIM_UNKNOWN");
    FILE *to = path && unknown_functions[0].name ? fopen(path, "a") : NULL;
    if (!to)
        return;
    for (size_t i = 0; i < 256 && unknown_functions[i].name; i++)
        fprintf(to, "%s %lu\n", unknown_functions[i].name, unknown_functions[i].calls);
    fclose(to);
}

#endif
