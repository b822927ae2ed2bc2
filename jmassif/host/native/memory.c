// SPDX-License-Identifier: GPL-2.0-or-later
//
// The recorder's memory: regions of its own from the kernel, never the program's heap. Small blocks are used again by
// size class, medium ones by first fit; the largest have a region each, and go back to the kernel. Called under the
// recorder's lock.

#include "host/native/memory.h"
#include "base/kernel.h"
#include "base/libc.h"
#include "host/host.h"

#include <asm/unistd.h>
#include <sys/mman.h>

#define REGION_BYTES ((SizeT)32 << 20) // pages that nobody touches cost nothing
#define HUGE_PAGE    ((SizeT)2 << 20)
#define LARGEST      ((SizeT)1 << 18) // not in a region of its own
#define SMALLEST_RUN ((SizeT)1 << 10)
#define RUN_STEP     ((SizeT)256)
#define N_CLASSES    (7 * 4) // 16 bytes × 2^n, in four steps

// Before each block; 16 bytes, so that blocks are aligned.
typedef struct {
    SizeT bytes; // of the block, without this
    UWord class; // or IS_RUN, IS_REGION
} Header;

#define IS_RUN    N_CLASSES
#define IS_REGION (N_CLASSES + 1)

typedef struct Free {
    struct Free *next;
} Free;

static Free *free_blocks[N_CLASSES];
static UChar *room, *room_end; // of the newest region

static OwnRegion regions[4096];
static UInt n_regions;

const OwnRegion *jm_own_regions(UInt *n)
{
    *n = n_regions;
    return regions;
}

extern UChar __bss_start[] __attribute__((visibility("hidden"))), _end[] __attribute__((visibility("hidden")));

// The kernel's list has the library's own zero-initialised data without its file, and in parts.
static void add_own_data(void)
{
    regions[n_regions++] =
        (OwnRegion){JM_ROUND_UP((Addr)__bss_start, HOST_PAGE_BYTES), JM_ROUND_UP((Addr)_end, HOST_PAGE_BYTES)};
}

static void unmap(Addr start, Addr end)
{
    if (start < end)
        jm_kernel_call(__NR_munmap, start, end - start, 0, 0, 0);
}

// Tables are read at random, so a large region asks for huge pages: an address in it needs no walk of page tables. But
// in the first part of the first region, all that a small program needs, they would cost more than they gain.
static void *take_region(SizeT bytes)
{
    const Bool is_first = !n_regions;
    const SizeT more = bytes < HUGE_PAGE ? 0 : HUGE_PAGE;
    if (is_first)
        add_own_data();
    Long start =
        jm_kernel_mmap(0, bytes + more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (jm_is_error(start) || n_regions == sizeof regions / sizeof *regions)
        host_fail("memory for the recorder", __FILE__, __LINE__, __func__);
    if (more) {
        const Addr end = start + bytes + more;
        const Addr aligned = JM_ROUND_UP((Addr)start, HUGE_PAGE), first = is_first ? HUGE_PAGE : 0;
        unmap(start, aligned);
        unmap(aligned + bytes, end);
        jm_kernel_call(__NR_madvise, aligned + first, bytes - first, MADV_HUGEPAGE, 0, 0);
        start = aligned;
    }
    regions[n_regions++] = (OwnRegion){start, start + bytes};
    return (void *)start;
}

static void give_region_back(void *start, SizeT bytes)
{
    UInt i = 0;
    while (regions[i].start != (Addr)start)
        i++;
    regions[i] = regions[--n_regions];
    jm_kernel_call(__NR_munmap, (UWord)start, bytes, 0, 0, 0);
}

// The class whose blocks have at least `bytes`; sets `bytes` to their size.
static UWord class_of(SizeT *bytes)
{
    SizeT wanted = *bytes < 16 ? 16 : *bytes;
    UInt power = 63 - __builtin_clzl(wanted);
    SizeT step = (SizeT)1 << (power < 6 ? 4 : power - 2);
    *bytes = JM_ROUND_UP(wanted, step);
    power = 63 - __builtin_clzl(*bytes);
    return (power - 4) * 4 + (*bytes - ((SizeT)1 << power)) / ((SizeT)1 << (power < 6 ? 4 : power - 2));
}

static Header *header_of(const void *p)
{
    return (Header *)p - 1;
}

// A free run. Tables that grow leave runs that are too small for them; neighbours are joined, and fit again.
typedef struct Run {
    struct Run *next; // further up
    SizeT bytes;
} Run;

static Run *runs;
static SizeT too_many = ~(SizeT)0; // bytes that no free run has

static void free_run(void *start, SizeT bytes)
{
    Run **place = &runs, *before = NULL, *run = start;
    while (*place && *place < run) {
        before = *place;
        place = &before->next;
    }
    *run = (Run){*place, bytes};
    *place = run;
    if (run->next == (void *)((UChar *)run + bytes))
        *run = (Run){run->next->next, bytes + run->next->bytes};
    if (before && run == (void *)((UChar *)before + before->bytes))
        *before = (Run){run->next, before->bytes + run->bytes};
    too_many = ~(SizeT)0;
}

// The header of a free run of these bytes; NULL if there is none.
static Header *take_run(SizeT bytes)
{
    Run **place = bytes < too_many ? &runs : NULL;
    while (place && *place && (*place)->bytes < bytes)
        place = &(*place)->next;
    Run *run = place ? *place : NULL;
    if (!run) {
        too_many = bytes < too_many ? bytes : too_many;
        return NULL;
    }
    const SizeT rest = run->bytes - bytes;
    *place = run->next;
    if (rest) {
        Run *after = (Run *)((UChar *)run + bytes);
        *after = (Run){run->next, rest};
        *place = after;
    }
    return (Header *)run;
}

static void *take(SizeT bytes, Bool *is_zero)
{
    Header *h;
    *is_zero = True;
    if (bytes > LARGEST) {
        SizeT whole = HOST_PAGE_UP(bytes + sizeof *h);
        h = take_region(whole);
        *h = (Header){whole - sizeof *h, IS_REGION};
        return h + 1;
    }
    const Bool is_run = bytes >= SMALLEST_RUN;
    UWord class = is_run ? IS_RUN : class_of(&bytes);
    if (is_run)
        bytes = JM_ROUND_UP(bytes + sizeof *h, RUN_STEP) - sizeof *h;
    Free *again = is_run ? NULL : free_blocks[class];
    if (again) {
        free_blocks[class] = again->next;
        *is_zero = False;
        return again;
    }
    h = is_run ? take_run(bytes + sizeof *h) : NULL;
    *is_zero = !h;
    if (!h) {
        if ((SizeT)(room_end - room) < bytes + sizeof *h) {
            room = take_region(REGION_BYTES);
            room_end = room + REGION_BYTES;
        }
        h = (Header *)room;
        room += bytes + sizeof *h;
    }
    *h = (Header){bytes, class};
    return h + 1;
}

void *host_alloc(const HChar *name, SizeT bytes)
{
    Bool is_zero;
    return take(bytes, &is_zero);
}

void *host_alloc_zeroed(const HChar *name, SizeT n, SizeT each)
{
    Bool is_zero;
    void *p = take(n * each, &is_zero);
    if (!is_zero)
        memset(p, 0, n * each);
    return p;
}

void host_free(void *p)
{
    if (!p)
        return;
    Header *h = header_of(p);
    if (h->class >= IS_RUN) {
        (h->class == IS_RUN ? free_run : give_region_back)(h, h->bytes + sizeof *h);
        return;
    }
    Free *freed = p;
    freed->next = free_blocks[h->class];
    free_blocks[h->class] = freed;
}

void *host_realloc(const HChar *name, void *p, SizeT bytes)
{
    if (p && bytes <= header_of(p)->bytes)
        return p;
    void *grown = host_alloc(name, bytes);
    if (p)
        memcpy(grown, p, header_of(p)->bytes);
    host_free(p);
    return grown;
}
