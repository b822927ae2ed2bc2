// SPDX-License-Identifier: GPL-2.0-or-later
//
// Functions of the C library that allocate on behalf of their caller.

#define _GNU_SOURCE
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void)
{
    char *copy = strdup("a string that is copied");
    char *part = strndup(copy, 8);
    char *printed = NULL;
    int length = asprintf(&printed, "%s and %05d", part, 42);

    FILE *file = tmpfile();
    for (int i = 0; i < 200; i++)
        fprintf(file, "line %d%*s\n", i, i, "");
    rewind(file);
    char *line = NULL;
    size_t capacity = 0, total = 0;
    ssize_t n;
    while ((n = getline(&line, &capacity, file)) > 0)
        total += (size_t)n;
    fclose(file);

    char *memory = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&memory, &size);
    for (int i = 0; i < 3000; i++)
        fprintf(stream, "%d,", i);
    fclose(stream);

    DIR *directory = opendir("/");
    int has_entries = readdir(directory) != NULL;
    closedir(directory);
    char *path = realpath("/usr/..", NULL);

    printf("%s %s %s %d %zu %zu %d %s\n", copy, part, printed, length, total, size, has_entries, path);
    free(copy);
    free(part);
    free(printed);
    free(line);
    free(memory);
    free(path);
    return 0;
}
