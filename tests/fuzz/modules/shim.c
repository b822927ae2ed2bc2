// SPDX-License-Identifier: GPL-2.0-or-later
//
// The host's part; see shim.h. Segments lie in one reserved range, each before pages that nobody may touch, so that a
// read beyond what was checked ends the run.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/kernel.h"
#include "host/host.h"
#include "shim.h"

#define PAGE 4096u

static unsigned char *range;
static Mapping segments[MOST_SEGMENTS];
static unsigned n_segments;

unsigned char *shim_segment(const uint8_t *bytes, size_t n, int is_code)
{
    if (!range) {
        range = mmap(NULL, (size_t)2 * SEGMENT_BYTES * MOST_SEGMENTS, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (range == MAP_FAILED)
            abort();
    }
    size_t span = (n + PAGE - 1) / PAGE * PAGE;
    if (span == 0)
        span = PAGE;
    if (n_segments == MOST_SEGMENTS || span > SEGMENT_BYTES)
        abort();
    unsigned char *at = range + (size_t)2 * SEGMENT_BYTES * n_segments;
    mprotect(at, span, PROT_READ | PROT_WRITE);
    memcpy(at, bytes, n);
    memset(at + n, 0, span - n);
    segments[n_segments++] = (Mapping){.start = (Addr)at,
                                       .end = (Addr)at + span,
                                       .as = is_code ? MAPPED_FILE : MAPPED_ANONYMOUS,
                                       .is_programs = True,
                                       .is_readable = True,
                                       .is_executable = is_code,
                                       .path = is_code ? "/object" : NULL,
                                       .device = is_code ? 7 : 0,
                                       .inode = is_code ? 7 : 0};
    return at;
}

void shim_forget(void)
{
    for (unsigned i = 0; i < n_segments; i++)
        mprotect((void *)segments[i].start, segments[i].end - segments[i].start, PROT_NONE);
    n_segments = 0;
}

static uint64_t state;

void shim_seed(const uint8_t *bytes, size_t n)
{
    state = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i += 1 + n / 512)
        state = (state ^ bytes[i]) * 0x100000001b3u;
    state |= 1;
}

uint64_t shim_number(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

// ---- files ---------------------------------------------------------------------------------------------------

static const uint8_t *file;
static size_t file_bytes, file_at;

void shim_file(const uint8_t *bytes, size_t n)
{
    file = bytes;
    file_bytes = n;
}

Int jm_open(const HChar *path, Int flags, UInt mode)
{
    file_at = 0;
    return 5;
}

Long jm_read(Int fd, void *to, SizeT n)
{
    size_t left = file_bytes - file_at, some = left < n ? left : n;
    if (some > 1 && shim_number() % 4 == 0) // less than was asked for, as the kernel may
        some = 1 + shim_number() % some;
    memcpy(to, file + file_at, some);
    file_at += some;
    return (Long)some;
}

__attribute__((weak)) Long jm_read_at(Int fd, void *to, SizeT n, ULong offset) // functions.c has its own file
{
    file_at = offset > file_bytes ? file_bytes : (size_t)offset;
    return jm_read(fd, to, n);
}

void jm_close(Int fd) {}

// ---- the host ------------------------------------------------------------------------------------------------

Bool host_mapping_at(Addr a, Mapping *found)
{
    for (unsigned i = 0; i < n_segments; i++)
        if (a >= segments[i].start && a < segments[i].end) {
            *found = segments[i];
            return True;
        }
    *found = (Mapping){.as = MAPPED_NOTHING};
    return False;
}

Bool host_is_readable(Addr start, SizeT bytes)
{
    Mapping s;
    return host_mapping_at(start, &s) && start + bytes >= start && start + bytes <= s.end;
}

void *host_alloc(const HChar *name, SizeT n)
{
    return malloc(n);
}
void *host_alloc_zeroed(const HChar *name, SizeT n, SizeT each)
{
    return calloc(n, each);
}
void *host_realloc(const HChar *name, void *p, SizeT n)
{
    return realloc(p, n);
}
void host_free(void *p)
{
    free(p);
}
void host_print(HostOutput kind, const HChar *text) {}

void host_fail(const HChar *condition, const HChar *path, UInt line, const HChar *function)
{
    fprintf(stderr, "%s:%u: %s: %s\n", path, line, function, condition);
    abort();
}

// Never called: no other thread is there whose memory would have to be copied.
Long __attribute__((weak)) jm_kernel_call6(UWord number, UWord a1, UWord a2, UWord a3, UWord a4, UWord a5, UWord a6)
{
    abort();
}

Int __attribute__((weak)) jm_process_id(void)
{
    abort();
}
