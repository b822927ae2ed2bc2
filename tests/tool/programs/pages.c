/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Maps, touches, unmaps, moves and shares memory. After each step it says what is resident of each mapping, by
 * mincore(2), or by its own /proc/self/smaps where mincore knows of more than what is mapped here (files and shared
 * memory: it tells what is in the page cache), and asks for a snapshot:
 *
 *     STEP FUNCTION RESIDENT VIRTUAL MAPPINGS
 *
 * FUNCTION is where the mapping was made; "step" ends a step. Nothing is printed before all is done: stdio has
 * mappings of its own.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include "jmassif.h"

#define PAGE (4096L)
#define MIB  (1024L * 1024)

static char said[1 << 16];
static size_t n_said;

static void say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    n_said += vsnprintf(said + n_said, sizeof said - n_said, format, arguments);
    va_end(arguments);
}

/* A file's text read without stdio, into memory that no step counts. */
static char smaps[1 << 21];

/* The bytes that /proc/self/smaps has for the part of the process between two addresses. */
static long resident_by_smaps(const char *from, long bytes)
{
    int file = open("/proc/self/smaps", O_RDONLY);
    long n = 0, got, sum = 0;
    while ((got = read(file, smaps + n, sizeof smaps - 1 - n)) > 0)
        n += got;
    smaps[n] = 0;
    close(file);
    unsigned long start = 0, end = 0;
    for (char *line = smaps; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        unsigned long a, b;
        long kib;
        if (sscanf(line, "%lx-%lx ", &a, &b) == 2)
            start = a, end = b;
        else if (sscanf(line, "Rss: %ld kB", &kib) == 1 && start >= (uintptr_t)from && end <= (uintptr_t)from + bytes)
            sum += kib * 1024;
    }
    return sum;
}

static long resident_by_mincore(void *at, long bytes)
{
    static unsigned char vector[1 << 16];
    long n = 0;
    if (mincore(at, bytes, vector) != 0)
        return -1;
    for (long i = 0; i < bytes / PAGE; i++)
        n += vector[i] & 1;
    return n * PAGE;
}

/* Where there is swap: to mincore, what is on its way there is still here. */
static long resident_and_not_swapped(char *start, long bytes)
{
    char text[256] = {0};
    FILE *swaps = fopen("/proc/swaps", "r");
    size_t length = fread(text, 1, sizeof text - 1, swaps);
    fclose(swaps);
    if (strchr(text, '\n') == text + length - 1) /* a heading and nothing else */
        return resident_by_mincore(start, bytes);
    FILE *pagemap = fopen("/proc/self/pagemap", "r");
    uint64_t entry;
    long resident = 0;
    fseek(pagemap, (long)((uintptr_t)start / PAGE * sizeof entry), SEEK_SET);
    for (long i = 0; i < bytes / PAGE && fread(&entry, sizeof entry, 1, pagemap) == 1; i++)
        resident += (long)(entry >> 63) * PAGE;
    fclose(pagemap);
    return resident;
}

static void step(void)
{
    say("step\n");
    JMASSIF_SNAPSHOT();
}

static void touch(char *at, long bytes)
{
    for (long i = 0; i < bytes; i += PAGE)
        at[i] = 1;
}

static char *map_anonymous(long bytes)
{
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* Each mapping is made by a function of its own, which is how the test tells them apart. */
#define MAKER(name, expression)                                                                                        \
    __attribute__((noinline)) static char *name(long bytes)                                                            \
    {                                                                                                                  \
        char *volatile at = expression;                                                                                \
        return at;                                                                                                     \
    }

static const char *path;

static char *map_file(int flags, long bytes)
{
    int file = open(path, O_RDWR);
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, file, 0);
    close(file);
    return at;
}

static char *map_memfd(long bytes)
{
    int file = memfd_create("pages", 0);
    if (ftruncate(file, bytes) != 0)
        abort();
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return at;
}

static char *map_system_v(long bytes)
{
    int id = shmget(IPC_PRIVATE, bytes, IPC_CREAT | 0600);
    char *at = shmat(id, NULL, 0);
    shmctl(id, IPC_RMID, NULL);
    return at;
}

static char *old_middle; /* what remap_grown moves */

MAKER(first_neighbour, map_anonymous(bytes))
MAKER(second_neighbour, map_anonymous(bytes))
MAKER(third_neighbour, map_anonymous(bytes))
MAKER(reserved, mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))
MAKER(private_file, map_file(MAP_PRIVATE, bytes))
MAKER(shared_file, map_file(MAP_SHARED, bytes))
MAKER(memory_file, map_memfd(bytes))
MAKER(system_v, map_system_v(bytes))
MAKER(shared_anonymous, mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
MAKER(locked, mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED, -1, 0))
MAKER(to_be_moved, map_anonymous(bytes))
MAKER(moved, mremap(old_middle, bytes / 4, bytes, MREMAP_MAYMOVE))
MAKER(grown_by_brk, (char *)sbrk(bytes))
MAKER(only_read, mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
MAKER(huge, map_anonymous(bytes))

/* Its stack's pages are known by its own buffer: at least that, and at most a few pages more. */
static void *thread(void *unused)
{
    char buffer[64 * PAGE];
    memset(buffer, 1, sizeof buffer);
    say("start_thread %ld %ld 1\n", (long)sizeof buffer, (long)MIB);
    step();
    return NULL;
}

__attribute__((noinline)) static void start_thread(void)
{
    pthread_attr_t attributes;
    pthread_t id;
    pthread_attr_init(&attributes);
    pthread_attr_setguardsize(&attributes, 0);
    pthread_attr_setstacksize(&attributes, MIB);
    pthread_create(&id, &attributes, thread, NULL);
    pthread_join(id, NULL);
}

static volatile char sink;

int main(int argc, char **argv)
{
    path = argv[1];
    char *heap = malloc(3 * MIB); /* of the heap, and no page of it is counted */
    memset(heap, 1, 3 * MIB);

    char *first = first_neighbour(2 * MIB), *second = second_neighbour(2 * MIB), *third = third_neighbour(2 * MIB);
    char *reservation = reserved(64 * MIB);
    touch(first + 5 * PAGE, 100 * PAGE);
    touch(second, 2 * MIB);
    touch(third, 7 * PAGE);
    say("first_neighbour %ld %ld 1\n", resident_by_mincore(first, 2 * MIB), 2 * MIB);
    say("second_neighbour %ld %ld 1\n", resident_by_mincore(second, 2 * MIB), 2 * MIB);
    say("third_neighbour %ld %ld 1\n", resident_by_mincore(third, 2 * MIB), 2 * MIB);
    say("reserved 0 %ld 1\n", 64 * MIB);
    step();

    munmap(first + MIB / 2, MIB);
    munmap(third, 2 * MIB);
    madvise(second, MIB, MADV_DONTNEED);
    mprotect(reservation, MIB, PROT_READ | PROT_WRITE);
    touch(reservation, 9 * PAGE);
    say("first_neighbour %ld %ld 2\n",
        resident_by_mincore(first, MIB / 2) + resident_by_mincore(first + MIB + MIB / 2, MIB / 2), MIB);
    say("second_neighbour %ld %ld 1\n", resident_by_mincore(second, 2 * MIB), 2 * MIB);
    say("third_neighbour 0 0 0\n");
    say("reserved %ld %ld 1\n", resident_by_mincore(reservation, MIB), 64 * MIB);
    step();

    char *copied = private_file(MIB), *shared = shared_file(MIB), *memory = memory_file(MIB), *segment = system_v(MIB);
    char *both = shared_anonymous(MIB), *pinned = locked(MIB / 4);
    touch(copied, 20 * PAGE);
    touch(shared + MIB / 2, MIB / 2);
    touch(memory, 11 * PAGE);
    touch(segment, 12 * PAGE);
    touch(both, 13 * PAGE);
    say("private_file %ld %ld 1\n", resident_by_smaps(copied, MIB), MIB);
    say("shared_file %ld %ld 1\n", resident_by_smaps(shared, MIB), MIB);
    say("memory_file %ld %ld 1\n", resident_by_smaps(memory, MIB), MIB);
    say("system_v %ld %ld 1\n", resident_by_smaps(segment, MIB), MIB);
    say("shared_anonymous %ld %ld 1\n", resident_by_smaps(both, MIB), MIB);
    say("locked %ld %ld 1\n", resident_by_mincore(pinned, MIB / 4), MIB / 4);
    step();

    /* Something that is in the way makes the mapping move. */
    old_middle = to_be_moved(MIB);
    mmap(old_middle + MIB, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    touch(old_middle, 30 * PAGE);
    char *target = moved(4 * MIB);
    touch(target + 3 * MIB, 40 * PAGE);
    say("to_be_moved %ld %ld 1\n", resident_by_mincore(target, MIB), MIB);
    say("moved %ld %ld 1\n", resident_by_mincore(target + MIB, 3 * MIB), 3 * MIB);
    step();

    char *old_break = sbrk(0);
    char *grown = grown_by_brk(MIB / 2);
    touch((char *)(((uintptr_t)grown + PAGE - 1) & -PAGE), MIB / 4);
    say("grown_by_brk %ld %ld 1\n", MIB / 4, MIB / 2);
    step();
    if (brk(old_break) != 0)
        return 1;
    say("grown_by_brk 0 0 0\n");
    step();

    /* Reading maps the page of zeros, which is not resident memory. */
    char *zeros = only_read(MIB);
    for (long i = 0; i < MIB; i += PAGE)
        sink += zeros[i];
    say("only_read %ld %ld 1\n", resident_by_smaps(zeros, MIB), MIB);
    char *large = huge(8 * MIB);
    madvise(large, 8 * MIB, MADV_HUGEPAGE);
    touch(large, 5 * MIB);
    say("huge %ld %ld 1\n", resident_by_mincore(large, 8 * MIB), 8 * MIB);
    step();

    start_thread();

    /* Where there is no swap, this does nothing, and is as right. */
    madvise(second + MIB, MIB, MADV_PAGEOUT);
    say("second_neighbour %ld %ld 1\n", resident_and_not_swapped(second, 2 * MIB), 2 * MIB);
    step();

    fputs(said, stdout);
    free(heap);
    return 0;
}
