/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The board's own truth: what is committed, and what nobody holds any more. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "board.h"

struct jmsim_books books;
uint64_t memory_bytes = UINT64_MAX;
static FILE *log_file;

bool log_open(const char *path)
{
    log_file = fopen(path, "we");
    return log_file;
}

void log_note(const char *format, ...)
{
    if (!log_file)
        return;
    va_list arguments;
    va_start(arguments, format);
    vfprintf(log_file, format, arguments);
    va_end(arguments);
    fputc('\n', log_file);
    fflush(log_file);
}

void logged(const struct call *call, const char *name, long result)
{
    if (!log_file)
        return;
    books_sweep();
    log_note("%d %s = %ld, committed %llu", call->tid, name, result, (unsigned long long)books.committed_bytes);
}

bool books_take(uint64_t *kind, uint64_t bytes)
{
    if (bytes > machine_left())
        books_sweep();
    if (bytes > machine_left())
        return false;
    *kind += bytes;
    books.committed_bytes += bytes;
    return true;
}

void books_give(uint64_t *kind, uint64_t bytes)
{
    *kind -= bytes;
    books.committed_bytes -= bytes;
}

static bool is_left(const struct file *file)
{
    return file->was_held && !file_held(file);
}

/* Devices first: their clients and mappings hold buffers, which go with them, and their files. */
void books_sweep(void)
{
    struct file *file = files;
    books.n_files = 0;
    while (file) {
        if (is_left(file)) {
            device_closed(file);
            books.n_files = 0;
            file = files;
            continue;
        }
        books.n_files += file->was_held;
        file = file->next;
    }
    nvmap_sweep();
}

uint64_t books_of_process(pid_t process)
{
    return nvmap_bytes_of(process) + rm_bytes_of(process) + uvm_bytes_of(process);
}

static long act_books(struct call *call)
{
    books_sweep();
    books.release = release;
    books.process_bytes = books_of_process(client_process(call->tid));
    books.managed_bytes = uvm_managed(call->tid);
    memcpy(call->data, &books, sizeof books);
    return 0;
}

static long act_foreign(struct call *call)
{
    struct file *file = file_new(FOREIGN, get64(call, 0));
    if (!file)
        return -ENFILE;
    int fd = client_hand_out(call, file, 0, true);
    file->was_held = true;
    if (fd < 0)
        return fd;
    put32(call, 8, (uint32_t)fd);
    return 0;
}

#define EVERYWHERE(number)                                                                                             \
    {                                                                                                                  \
        number, number, number, number, number, number                                                                 \
    }

const struct command board_commands[] = {
    {EVERYWHERE(JMSIM_BOARD_BOOKS), "books", act_books},
    {EVERYWHERE(JMSIM_BOARD_FOREIGN), "foreign", act_foreign},
    {{0}, NULL, NULL},
};
