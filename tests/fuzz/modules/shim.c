// SPDX-License-Identifier: GPL-2.0-or-later
//
// The core's part; see shim.h. Segments lie in one reserved range, each before pages that nobody may touch, so that a
// read beyond what was checked ends the run.

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/compat.h"
#include "shim.h"

#define PAGE 4096u

static unsigned char *range;
static NSegment segments[MOST_SEGMENTS];
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
    NSegment *s = &segments[n_segments++];
    memset(s, 0, sizeof *s);
    s->kind = is_code ? SkFileC : SkAnonC;
    s->start = (Addr)at;
    s->end = (Addr)at + span - 1;
    s->dev = s->ino = is_code ? 7 : 0;
    s->hasR = True;
    s->hasX = is_code;
    return at;
}

void shim_forget(void)
{
    for (unsigned i = 0; i < n_segments; i++)
        mprotect((void *)segments[i].start, segments[i].end + 1 - segments[i].start, PROT_NONE);
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

Int VG_(fd_open)(const HChar *path, Int flags, Int mode)
{
    file_at = 0;
    return 5;
}

SysRes VG_(open)(const HChar *path, Int flags, Int mode)
{
    SysRes opened;
    memset(&opened, 0, sizeof opened);
    opened._val = (UWord)VG_(fd_open)(path, flags, mode);
    return opened;
}

Int VG_(read)(Int fd, void *to, Int n)
{
    size_t left = file_bytes - file_at, some = left < (size_t)n ? left : (size_t)n;
    if (some > 1 && shim_number() % 4 == 0) // less than was asked for, as the kernel may
        some = 1 + shim_number() % some;
    memcpy(to, file + file_at, some);
    file_at += some;
    return (Int)some;
}

Off64T VG_(lseek)(Int fd, Off64T offset, Int whence)
{
    file_at = offset < 0 || (size_t)offset > file_bytes ? file_bytes : (size_t)offset;
    return offset;
}

void VG_(close)(Int fd) {}

// ---- memory --------------------------------------------------------------------------------------------------

NSegment const *VG_(am_find_nsegment)(Addr a)
{
    for (unsigned i = 0; i < n_segments; i++)
        if (a >= segments[i].start && a <= segments[i].end)
            return &segments[i];
    return NULL;
}

Bool VG_(am_is_valid_for_client)(Addr start, SizeT bytes, UInt protection)
{
    const NSegment *s = VG_(am_find_nsegment)(start);
    return s && (bytes == 0 || (start + bytes - 1 >= start && start + bytes - 1 <= s->end));
}

void *VG_(malloc)(const HChar *centre, SizeT n)
{
    return malloc(n);
}
void *VG_(calloc)(const HChar *centre, SizeT n, SizeT each)
{
    return calloc(n, each);
}
void *VG_(realloc)(const HChar *centre, void *p, SizeT n)
{
    return realloc(p, n);
}
void VG_(free)(void *p)
{
    free(p);
}

// ---- texts ---------------------------------------------------------------------------------------------------

void *VG_(memcpy)(void *to, const void *from, SizeT n)
{
    return memcpy(to, from, n);
}
void *VG_(memmove)(void *to, const void *from, SizeT n)
{
    return memmove(to, from, n);
}
void *VG_(memset)(void *to, Int byte, SizeT n)
{
    return memset(to, byte, n);
}
Int VG_(memcmp)(const void *a, const void *b, SizeT n)
{
    return memcmp(a, b, n);
}
SizeT VG_(strlen)(const HChar *s)
{
    return strlen(s);
}
Int VG_(strcmp)(const HChar *a, const HChar *b)
{
    return strcmp(a, b);
}
Int VG_(strncmp)(const HChar *a, const HChar *b, SizeT n)
{
    return strncmp(a, b, n);
}
HChar *VG_(strchr)(const HChar *s, HChar c)
{
    return strchr(s, c);
}
HChar *VG_(strrchr)(const HChar *s, HChar c)
{
    return strrchr(s, c);
}
HChar *VG_(strstr)(const HChar *s, const HChar *part)
{
    return strstr(s, part);
}
SizeT VG_(strlcpy)(HChar *to, const HChar *from, SizeT size)
{
    return (SizeT)snprintf(to, size, "%s", from);
}
Bool VG_(isdigit)(HChar c)
{
    return c >= '0' && c <= '9';
}

// Without a limit, as the core's: a number that is too large wraps.
ULong VG_(strtoull10)(const HChar *s, HChar **end)
{
    ULong n = 0;
    while (*s == ' ' || *s == '\t')
        s++;
    for (; VG_(isdigit)(*s); s++)
        n = n * 10 + (ULong)(*s - '0');
    if (end)
        *end = (HChar *)s;
    return n;
}

UInt VG_(snprintf)(HChar *to, Int size, const HChar *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(to, (size_t)size, format, arguments);
    va_end(arguments);
    return (UInt)n;
}

void VG_(assert_fail)(Bool is_core, const HChar *expression, const HChar *path, Int line, const HChar *function,
                      const HChar *format, ...)
{
    fprintf(stderr, "%s:%d: %s: %s\n", path, line, function, expression);
    abort();
}
