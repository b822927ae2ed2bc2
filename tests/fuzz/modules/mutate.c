// SPDX-License-Identifier: GPL-2.0-or-later
//
// A main program for a target where there is no libFuzzer:  TARGET SEED SECONDS PROGRESS FILE…
//
// Changes the files and hands them to the target for so long. The number of the input that it is at stands in PROGRESS,
// a file of eight bytes, also when a sanitizer ends the run; with --only=NUMBER before FILE… that input alone is made.
// Prints how many there were, and the longest processor time that one took in microseconds.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <fcntl.h>
#include <unistd.h>

#include "shim.h"

enum { MOST_FILES = 64, MOST_BYTES = 1 << 18 };

static struct {
    uint8_t *bytes;
    size_t n;
} files[MOST_FILES];
static unsigned n_files;
static uint64_t state;

static uint64_t number(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state >> 3;
}

static void read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f || n_files == MOST_FILES) {
        fprintf(stderr, "%s cannot be read\n", path);
        exit(2);
    }
    files[n_files].bytes = malloc(MOST_BYTES);
    files[n_files].n = fread(files[n_files].bytes, 1, MOST_BYTES, f);
    n_files++;
    fclose(f);
}

static const uint64_t telling[] = {0,          1,          2,          4,          8,          0x7f,       0x80,
                                   0xff,       0x7fff,     0xffff,     0x7fffffff, 0x80000000, 0xffffffff, 0xfffffff0,
                                   1ull << 47, 1ull << 48, 1ull << 63, ~0ull,      ~0ull - 7};

static void change(uint8_t *bytes, size_t *n)
{
    size_t at = number() % *n, wide = (size_t)1 << number() % 4;
    switch (number() % 9) {
    case 0:
        bytes[at] = (uint8_t)number();
        break;
    case 1:
        bytes[at] ^= (uint8_t)(1u << number() % 8);
        break;
    case 2:
    case 3: { // a number where numbers stand
        uint64_t value = telling[number() % (sizeof telling / sizeof *telling)];
        at -= at % wide;
        if (at + wide <= *n)
            memcpy(bytes + at, &value, wide);
        break;
    }
    case 4: { // a little more or less
        uint32_t value;
        at -= at % 4;
        if (at + 4 > *n)
            break;
        memcpy(&value, bytes + at, 4);
        value += (uint32_t)(number() % 65) - 32;
        memcpy(bytes + at, &value, 4);
        break;
    }
    case 5: { // one part over another
        size_t from = number() % *n, some = 1 + number() % 64;
        if (from + some <= *n && at + some <= *n)
            memmove(bytes + at, bytes + from, some);
        break;
    }
    case 6: // of one byte
        memset(bytes + at, (int)number(), *n - at < 200 ? *n - at : 1 + number() % 200);
        break;
    case 7: // cut
        if (number() % 4 == 0)
            *n = 1 + number() % *n;
        break;
    default: { // a part again, behind itself
        size_t some = 1 + number() % 300;
        if (at + some <= *n && *n + some <= MOST_BYTES) {
            memmove(bytes + at + some, bytes + at, *n - at);
            *n += some;
        }
    }
    }
}

static void attempt(uint64_t seed, uint64_t which)
{
    static uint8_t bytes[MOST_BYTES];
    state = (seed * 0x9e3779b97f4a7c15u ^ which * 0xc2b2ae3d27d4eb4fu) | 1;
    for (int i = 0; i < 8; i++)
        number();
    unsigned f = number() % n_files;
    size_t n = files[f].n;
    memcpy(bytes, files[f].bytes, n);
    for (uint64_t changes = 1 + number() % (number() % 4 ? 8 : 200); changes > 0 && n > 0; changes--)
        change(bytes, &n);
    LLVMFuzzerTestOneInput(bytes, n);
}

static double processor(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    if (argc < 5)
        return 2;
    uint64_t seed = strtoull(argv[1], NULL, 10), only = 0;
    int fd = open(argv[3], O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, 8) != 0)
        return 2;
    volatile uint64_t *at = mmap(NULL, 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    for (int i = 4; i < argc; i++)
        if (strncmp(argv[i], "--only=", 7) == 0)
            only = strtoull(argv[i] + 7, NULL, 10);
        else
            read_file(argv[i]);
    if (only) {
        attempt(seed, only);
        return 0;
    }
    double longest = 0, now = processor(), end = now + atoi(argv[2]);
    uint64_t longest_at = 0;
    while (now < end) {
        ++*at;
        attempt(seed, *at);
        double before = now;
        now = processor();
        if (now - before > longest) {
            longest = now - before;
            longest_at = *at;
        }
    }
    printf("%llu inputs, longest %.0f us (%llu)\n", (unsigned long long)*at, longest * 1e6,
           (unsigned long long)longest_at);
    return 0;
}
