/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The board: how much memory it has, how much is taken, and the pages behind it. On a Jetson host
 * and device share it, so pinned memory counts against the limit as well; with JMSIM_DISCRETE=1
 * the board is a graphics card's memory and pinned memory does not. Pages are anonymous and
 * touched only by those who use them. With JMSIM_RESERVED=1 device memory has addresses and no
 * pages, as under unified addressing: they come from a mapping that nobody may touch, made when
 * the driver starts. */
#include <stdlib.h>
#include <sys/mman.h>

#include "entry.h"

/* What a Jetson Nano, the smallest board in the field, has. */
#define DEFAULT_BOARD_BYTES ((uint64_t)4 << 30)

struct jmsim_stats live;
static bool discrete;

#define RESERVED_BYTES ((size_t)16 << 30)
static uintptr_t reserved, reserved_end; /* what is left of it; addresses are given out once */

void board_setup(void)
{
    const char *limit = getenv("JMSIM_BOARD_BYTES");
    const char *kind = getenv("JMSIM_DISCRETE");
    live.board_bytes = limit ? strtoull(limit, NULL, 0) : DEFAULT_BOARD_BYTES;
    discrete = kind && kind[0] == '1';
    const char *reserve = getenv("JMSIM_RESERVED");
    if (reserve && reserve[0] == '1') {
        void *at = mmap(NULL, RESERVED_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (at != MAP_FAILED) {
            reserved = (uintptr_t)at;
            reserved_end = reserved + RESERVED_BYTES;
        }
    }
    nodes_setup();
}

bool board_integrated(void)
{
    return !discrete;
}

bool board_has_contents(void)
{
    return !reserved_end;
}

static bool board_take(size_t bytes)
{
    if (bytes > live.board_bytes - live.board_used_bytes)
        return false;
    live.board_used_bytes += bytes;
    return true;
}

static void board_give(size_t bytes)
{
    live.board_used_bytes -= bytes;
}

uintptr_t pages_map(size_t bytes, bool below_4g)
{
    enum { FLAGS = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE };
    /* A hint is honoured where the place is free; who needs low addresses tries a few. */
    for (uintptr_t hint = 0x20000000; below_4g && hint < 0xf0000000; hint += 0x1000000) {
        void *at = mmap((void *)hint, bytes, PROT_READ | PROT_WRITE, FLAGS, -1, 0);
        if (at == MAP_FAILED)
            return 0;
        if ((uintptr_t)at + bytes <= UINT32_MAX)
            return (uintptr_t)at;
        munmap(at, bytes);
    }
    if (below_4g)
        return 0;
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, FLAGS, -1, 0);
    return at == MAP_FAILED ? 0 : (uintptr_t)at;
}

void pages_unmap(uintptr_t address, size_t bytes)
{
    munmap((void *)address, bytes);
}

static bool is_reserved(uintptr_t address)
{
    return address < reserved_end && address >= reserved_end - RESERVED_BYTES;
}

static bool pages_back(struct object *object, size_t span, enum backing backing)
{
    if (backing <= NO_ADDRESS)
        return true;
    if (backing == DEVICE_PAGES && reserved_end) {
        if (span > reserved_end - reserved)
            return false;
        object->address = reserved;
        reserved += span;
        return true;
    }
    object->address = pages_map(span, backing == LOW_PAGES);
    return object->address;
}

bool board_back(struct object *object, size_t bytes, size_t span, enum backing backing)
{
    if (!board_take(bytes))
        return false;
    if (!(nodes_there() ? nodes_back(object, span, backing) : pages_back(object, span, backing))) {
        board_give(bytes);
        return false;
    }
    object->board_bytes = bytes;
    object->span_bytes = span;
    return true;
}

bool board_back_context(struct object *context, size_t bytes)
{
    if (!board_take(bytes))
        return false;
    if (nodes_there() && !nodes_back_context(context, bytes)) {
        board_give(bytes);
        return false;
    }
    context->board_bytes = bytes;
    return true;
}

void board_unback(struct object *object)
{
    if (object->buffers)
        nodes_unback(object);
    else if (object->address && !is_reserved(object->address))
        pages_unmap(object->address, object->span_bytes);
    board_give(object->board_bytes);
    object->board_bytes = 0;
}

size_t round_up(size_t bytes, size_t to)
{
    size_t up = (bytes + to - 1) & ~(to - 1);
    return up < bytes ? SIZE_MAX & ~(to - 1) : up;
}

void amount_add(struct jmsim_amount *amount, size_t bytes)
{
    amount->bytes += bytes;
    amount->blocks++;
}

void amount_remove(struct jmsim_amount *amount, size_t bytes)
{
    amount->bytes -= bytes;
    amount->blocks--;
}

EXPORT void jmsim_stats(struct jmsim_stats *stats)
{
    sim_lock();
    *stats = live;
    sim_unlock();
    /* Kept without the lock (below), so read without it. */
    stats->heap.bytes = __atomic_load_n(&live.heap.bytes, __ATOMIC_RELAXED);
    stats->heap.blocks = __atomic_load_n(&live.heap.blocks, __ATOMIC_RELAXED);
}

/* Called with the lock held (by the driver itself) and without it (by the other libraries). */
EXPORT void jmsim_count_heap(int64_t bytes, int64_t blocks)
{
    __atomic_fetch_add(&live.heap.bytes, (uint64_t)bytes, __ATOMIC_RELAXED);
    __atomic_fetch_add(&live.heap.blocks, (uint64_t)blocks, __ATOMIC_RELAXED);
}
