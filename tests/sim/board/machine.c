/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the kernel tells of the machine's memory, when it is to be the board's (--machine): processes that open one of
 * these files get ours. On a Jetson what drivers commit and what processes touch come out of the same memory, so both
 * are in the figures, and a driver gets no more than is left. What the system and its file cache have taken before is
 * invented. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "board.h"

#define SYSTEM_BYTES ((uint64_t)560 << 20)
#define LARGEST_FREE ((uint64_t)4 << 20)

enum { MAX_PROCESSES = 256 };

bool machine_is_board;
uint64_t machine_cma, machine_cached = (uint64_t)240 << 20;

/* Those that have asked for a figure or opened a device. */
static pid_t processes[MAX_PROCESSES];
static size_t n_processes;

void machine_knows(pid_t process)
{
    for (size_t i = 0; i < n_processes; i++)
        if (processes[i] == process)
            return;
    if (n_processes < MAX_PROCESSES)
        processes[n_processes++] = process;
}

/* What processes have touched, but for the devices' buffers, which are shared memory here. */
static uint64_t touched_bytes(void)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n_processes; i++)
        sum += client_private_bytes(processes[i]);
    return sum;
}

uint64_t machine_left(void)
{
    if (!machine_is_board)
        return memory_bytes > books.committed_bytes ? memory_bytes - books.committed_bytes : 0;
    uint64_t used = SYSTEM_BYTES + touched_bytes() + books.committed_bytes;
    return memory_bytes > used ? memory_bytes - used : 0;
}

/* Since L4T 36.4.7 a request is held against what is available, without the reserve and a thousandth
 * (system_heap_free_mem of the public nvmap sources). */
uint64_t machine_granted(void)
{
    if (!machine_cma)
        return UINT64_MAX;
    uint64_t left = machine_left();
    left -= left < machine_cma ? left : machine_cma;
    return (left - left / 1000) & ~(PAGE_BYTES - 1);
}

static void say(int fd, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(int fd, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vdprintf(fd, format, arguments);
    va_end(arguments);
}

static void tell_meminfo(int fd, uint64_t available, uint64_t cached)
{
    const struct {
        const char *label;
        uint64_t bytes;
    } lines[] = {{"MemTotal", memory_bytes},
                 {"MemFree", available - cached},
                 {"MemAvailable", available},
                 {"Buffers", 0},
                 {"Cached", cached},
                 {"SReclaimable", 0},
                 {"SwapTotal", 0},
                 {"SwapFree", 0},
                 {"CmaTotal", machine_cma},
                 {"CmaFree", machine_cma},
                 /* L4T's kernels tell what their driver has given out. */
                 {"NvMapMemUsed", books.committed_bytes},
                 {"NvMapMemFree", available}};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        say(fd, "%s:%*llu kB\n", lines[i].label, 24 - (int)strlen(lines[i].label),
            (unsigned long long)(lines[i].bytes >> 10));
}

/* Free blocks of 4 KiB, 8 KiB … 4 MiB. */
static void tell_buddyinfo(int fd, uint64_t available, uint64_t cached)
{
    say(fd, "Node 0, zone   Normal");
    for (uint64_t bytes = PAGE_BYTES; bytes < LARGEST_FREE; bytes *= 2)
        say(fd, " %6d", 1);
    say(fd, " %6llu\n", (unsigned long long)((available - cached) / LARGEST_FREE));
}

/* No processor has free pages at hand: those of the machine that simulates are not the board's. */
static void tell_zoneinfo(int fd, uint64_t available, uint64_t cached)
{
    (void)available, (void)cached;
    say(fd, "Node 0, zone   Normal\n  pagesets\n    cpu: 0\n              count: 0\n");
}

static const struct {
    const char *path;
    void (*tell)(int fd, uint64_t available, uint64_t cached);
} FILES[] = {
    {"/proc/meminfo", tell_meminfo},
    {"/proc/buddyinfo", tell_buddyinfo},
    {"/proc/zoneinfo", tell_zoneinfo},
};

int machine_file(const struct call *call, const char *path)
{
    for (size_t i = 0; machine_is_board && i < sizeof FILES / sizeof *FILES; i++) {
        if (strcmp(FILES[i].path, path) != 0)
            continue;
        int fd = memfd_create("machine", MFD_CLOEXEC);
        if (fd < 0)
            return -1;
        machine_knows(client_process(call->tid));
        books_sweep();
        uint64_t available = machine_left();
        FILES[i].tell(fd, available, available < machine_cached ? available : machine_cached);
        lseek(fd, 0, SEEK_SET);
        return fd;
    }
    return -1;
}
