/* SPDX-License-Identifier: GPL-2.0-or-later */
/* mmap and its kin: mappings are cut, moved, grown, made anew over parts of others, protected and emptied, and the
 * break goes up and down. Each page that was written to holds a word that tells, and is compared later. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>

#include "sequences.h"

enum { N_MAPS = 24, MOST_PAGES = 48, PAGE = 4096 };

struct mapping {
    unsigned char *at;
    size_t pages;
    uint64_t words[MOST_PAGES]; /* 0: not written to */
    bool is_shared;
};

static struct mapping maps[N_MAPS];

static NOINLINE void *map_pages(void *wanted, size_t pages, int flags)
{
    void *at = mmap(wanted, pages * PAGE, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0);
    MUST(at != MAP_FAILED);
    return at;
}

static uint64_t *word_of(const struct mapping *m, size_t page)
{
    return (uint64_t *)(m->at + page * PAGE + 8 * (page % 512));
}

static void compare(const struct mapping *m)
{
    for (size_t i = 0; i < m->pages; i++)
        if (m->words[i])
            MUST(*word_of(m, i) == m->words[i]);
}

static void touch(struct walker *w, struct mapping *m)
{
    size_t from = chance(w, m->pages), n = 1 + chance(w, m->pages - from);
    for (size_t i = from; i < from + n; i++)
        *word_of(m, i) = m->words[i] = chance(w, UINT32_MAX) + 1;
}

static struct mapping *free_slot(void)
{
    for (struct mapping *m = maps; m < maps + N_MAPS; m++)
        if (!m->pages)
            return m;
    return NULL;
}

/* The words lie at places that follow from the page's number, so a mapping that begins elsewhere has them written anew.
 */
static void write_words(struct mapping *m)
{
    for (size_t i = 0; i < m->pages; i++)
        if (m->words[i])
            *word_of(m, i) = m->words[i];
}

/* The pages from `first` on become a mapping of their own, or are forgotten where no slot is free. */
static void split(struct mapping *m, size_t first)
{
    struct mapping *upper = free_slot();
    if (first < m->pages && upper) {
        upper->at = m->at + first * PAGE;
        upper->pages = m->pages - first;
        upper->is_shared = m->is_shared;
        memset(upper->words, 0, sizeof upper->words);
        memcpy(upper->words, m->words + first, upper->pages * sizeof *m->words);
        write_words(upper);
    } else if (first < m->pages) {
        MUST(munmap(m->at + first * PAGE, (m->pages - first) * PAGE) == 0);
    }
    m->pages = first < m->pages ? first : m->pages;
}

static void unmap_part(struct walker *w, struct mapping *m)
{
    size_t from = chance(w, m->pages), n = 1 + chance(w, m->pages - from);
    compare(m);
    MUST(munmap(m->at + from * PAGE, n * PAGE) == 0);
    struct mapping rest = *m;
    m->pages = from;
    if (from + n < rest.pages) {
        struct mapping *upper = m->pages ? free_slot() : m;
        rest.at += (from + n) * PAGE;
        rest.pages -= from + n;
        memmove(rest.words, rest.words + from + n, rest.pages * sizeof *rest.words);
        if (!upper) {
            MUST(munmap(rest.at, rest.pages * PAGE) == 0);
            return;
        }
        *upper = rest;
        write_words(upper);
    }
}

static NOINLINE void move(struct walker *w, struct mapping *m)
{
    size_t pages = 1 + chance(w, MOST_PAGES);
    compare(m);
    unsigned char *to, *wanted;
    if (m->is_shared && pages > m->pages) /* beyond the end of what is shared there is nothing */
        pages = m->pages;
    if (chance(w, 3) == 0) { /* to a place that we name, over what is there */
        wanted = map_pages(NULL, pages, MAP_PRIVATE | MAP_NORESERVE);
        to = mremap(m->at, m->pages * PAGE, pages * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, wanted);
    } else {
        to = mremap(m->at, m->pages * PAGE, pages * PAGE, MREMAP_MAYMOVE);
    }
    MUST(to != MAP_FAILED);
    for (size_t i = m->pages; i < pages; i++)
        m->words[i] = 0;
    m->at = to;
    m->pages = pages;
    compare(m);
}

static NOINLINE void map_over(struct walker *w, struct mapping *m)
{
    size_t from = chance(w, m->pages), n = 1 + chance(w, m->pages - from);
    map_pages(m->at + from * PAGE, n, MAP_PRIVATE | MAP_FIXED);
    memset(m->words + from, 0, n * sizeof *m->words);
    if (m->is_shared) { /* two kinds in one would be too hard for mremap */
        MUST(munmap(m->at, m->pages * PAGE) == 0);
        m->pages = 0;
        return;
    }
    compare(m);
    split(m, from + n);
    split(m, from);
}

static void protect(struct walker *w, struct mapping *m)
{
    size_t from = chance(w, m->pages), n = 1 + chance(w, m->pages - from);
    static const int ways[] = {PROT_NONE, PROT_READ, PROT_READ | PROT_EXEC};
    MUST(mprotect(m->at + from * PAGE, n * PAGE, ways[chance(w, 3)]) == 0);
    MUST(mprotect(m->at, m->pages * PAGE, PROT_READ | PROT_WRITE) == 0);
}

static void drop(struct walker *w, struct mapping *m)
{
    size_t from = chance(w, m->pages), n = 1 + chance(w, m->pages - from);
    MUST(madvise(m->at + from * PAGE, n * PAGE, MADV_DONTNEED) == 0);
    for (size_t i = from; i < from + n && !m->is_shared; i++)
        m->words[i] = 0; /* to read them would be to map the page of zeroes, which is and is not resident */
    compare(m);
}

static NOINLINE void make(struct walker *w, struct mapping *m)
{
    m->pages = 1 + chance(w, MOST_PAGES);
    m->is_shared = chance(w, 5) == 0;
    m->at = map_pages(NULL, m->pages, m->is_shared ? MAP_SHARED : MAP_PRIVATE | (chance(w, 3) ? 0 : MAP_NORESERVE));
    memset(m->words, 0, sizeof m->words);
    if (chance(w, 4))
        touch(w, m);
}

/* The break: what malloc has taken from it meanwhile (without a profiler) stays. */
static unsigned char *break_start, *break_end;

static NOINLINE void move_break(struct walker *w)
{
    if (!break_start)
        break_start = break_end = sbrk(0);
    intptr_t grow = (intptr_t)chance(w, 40000), shrink = (intptr_t)chance(w, 20000);
    bool shrinks = chance(w, 3) == 0;
    if (sbrk(0) != break_end)
        return;
    if (shrinks && break_end - shrink >= break_start) {
        sbrk(-shrink);
    } else if (break_end - break_start < 1 << 20) {
        unsigned char *p = sbrk(grow);
        if (p != (void *)-1)
            for (intptr_t i = 0; i < grow; i += PAGE)
                p[i] = 1;
    }
    break_end = sbrk(0);
}

/* (mremap of what is not mapped ends Valgrind 3.19 itself, under any tool.) */
static NOINLINE void in_vain(struct walker *w)
{
    switch (chance(w, 3)) {
    case 0:
        MUST(munmap((void *)1, PAGE) == -1);
        break;
    case 1:
        MUST(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
        break;
    default:
        MUST(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, -1, 0) == MAP_FAILED);
    }
}

void maps_step(struct walker *w)
{
    struct mapping *m = &maps[chance(w, N_MAPS)];
    uint64_t what = chance(w, 16);
#define DO(step)                                                                                                       \
    do {                                                                                                               \
        last_step = "maps " #step;                                                                                     \
        step;                                                                                                          \
    } while (0)
    if (what == 0)
        DO(in_vain(w));
    else if (what == 1)
        DO(move_break(w));
    else if (!m->pages)
        DO(make(w, m));
    else if (what < 5)
        DO(touch(w, m));
    else if (what < 8)
        DO(move(w, m));
    else if (what < 10)
        DO(map_over(w, m));
    else if (what < 12)
        DO(protect(w, m));
    else if (what < 13)
        DO(drop(w, m));
    else
        DO(unmap_part(w, m));
#undef DO
    found(w, m->pages);
}

void maps_in_child(void)
{
    for (struct mapping *m = maps; m < maps + N_MAPS; m++)
        if (m->pages && m->is_shared) {
            MUST(munmap(m->at, m->pages * PAGE) == 0);
            m->pages = 0;
        }
}

/* To the byte: the break is at no page's start. */
static uint64_t present(int pagemap, const unsigned char *at, size_t bytes)
{
    uint64_t sum = 0;
    for (uintptr_t from = (uintptr_t)at, end = from + bytes; from < end;) {
        uintptr_t page = from / PAGE, next = (page + 1) * PAGE < end ? (page + 1) * PAGE : end;
        uint64_t entry;
        MUST(pread(pagemap, &entry, sizeof entry, (off_t)(page * sizeof entry)) == sizeof entry);
        sum += (entry >> 63) * (next - from);
        from = next;
    }
    return sum;
}

uint64_t maps_resident(void)
{
    int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    MUST(pagemap >= 0);
    uint64_t sum = 0;
    for (const struct mapping *m = maps; m < maps + N_MAPS; m++)
        if (m->pages)
            sum += present(pagemap, m->at, m->pages * PAGE);
    if (break_start && break_end > break_start)
        sum += present(pagemap, break_start, (size_t)(break_end - break_start));
    close(pagemap);
    return sum;
}
