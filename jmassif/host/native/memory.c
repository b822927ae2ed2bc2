// SPDX-License-Identifier: GPL-2.0-or-later
//
// The recorder's memory: regions of its own from the kernel, never the program's heap. Blocks of a size class are used
// again; larger ones have a region each, and go back to the kernel. Called under the recorder's lock.

#include "host/native/memory.h"
#include "base/kernel.h"
#include "base/libc.h"
#include "host/host.h"

#include <asm/unistd.h>
#include <sys/mman.h>

#define REGION_BYTES ((SizeT)32 << 20) // pages that nobody touches cost nothing
#define LARGEST      ((SizeT)1 << 18)  // of a class
#define N_CLASSES    (15 * 4)          // 16 bytes × 2^n, in four steps

// Before each block; 16 bytes, so that blocks are aligned.
typedef struct {
    SizeT bytes; // of the block, without this
    UWord class; // N_CLASSES: a region of its own
} Header;

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

static void *take_region(SizeT bytes)
{
    Long start = jm_kernel_mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (jm_is_error(start) || n_regions == sizeof regions / sizeof *regions)
        host_fail("memory for the recorder", __FILE__, __LINE__, __func__);
    regions[n_regions++] = (OwnRegion){start, start + bytes};
    return (void *)start;
}

static void give_region_back(Addr start, SizeT bytes)
{
    UInt i = 0;
    while (regions[i].start != start)
        i++;
    regions[i] = regions[--n_regions];
    jm_kernel_call(__NR_munmap, start, bytes, 0, 0, 0);
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

static void *take(SizeT bytes, Bool *is_zero)
{
    Header *h;
    *is_zero = True;
    if (bytes > LARGEST) {
        SizeT whole = HOST_PAGE_UP(bytes + sizeof *h);
        h = take_region(whole);
        *h = (Header){whole - sizeof *h, N_CLASSES};
        return h + 1;
    }
    UWord class = class_of(&bytes);
    Free *again = free_blocks[class];
    if (again) {
        free_blocks[class] = again->next;
        *is_zero = False;
        return again;
    }
    if ((SizeT)(room_end - room) < bytes + sizeof *h) {
        room = take_region(REGION_BYTES);
        room_end = room + REGION_BYTES;
    }
    h = (Header *)room;
    room += bytes + sizeof *h;
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
    if (h->class == N_CLASSES) {
        give_region_back((Addr)h, h->bytes + sizeof *h);
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
