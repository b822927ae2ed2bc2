/* SPDX-License-Identifier: GPL-2.0-or-later */
/* nvgpu: address spaces, channels and their groups. Only mappings matter to memory: each holds its buffer until it is
 * unmapped or the address space is closed. What the kernel's driver allocates for itself (page tables, a channel's
 * buffers) shows in no call, on a board either. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "board.h"

/* Where no process has memory: the driver maps what the CPU sees too at the same address. */
#define FIRST_VA   ((uint64_t)1 << 47)
#define VA_ALIGN   ((uint64_t)64 << 10)
#define FIXED      (1u << 0)
#define MAX_BATCH  256
#define MAP_SIZE   40
#define UNMAP_SIZE 8

struct mapping {
    struct mapping *next;
    struct buffer *buffer;
    uint64_t va, bytes;
};

struct space {
    struct mapping *mappings;
    uint64_t next_va;
};

static struct space *space_of(struct file *file)
{
    if (!file->object)
        file->object = calloc(1, sizeof(struct space));
    if (!file->object)
        abort();
    return file->object;
}

static bool overlaps(const struct space *space, uint64_t va, uint64_t bytes)
{
    for (const struct mapping *mapping = space->mappings; mapping; mapping = mapping->next)
        if (va < mapping->va + mapping->bytes && mapping->va < va + bytes)
            return true;
    return false;
}

static void unmap(struct mapping **link)
{
    struct mapping *mapping = *link;
    *link = mapping->next;
    buffer_unpin(mapping->buffer);
    free(mapping);
}

void as_close(struct file *file)
{
    struct space *space = space_of(file);
    while (space->mappings)
        unmap(&space->mappings);
    free(space);
}

static long new_fd(struct call *call, enum device device, size_t fd_at)
{
    struct file *file = file_new(device, 0);
    if (!file)
        return -ENFILE;
    int fd = client_hand_out(call, file, 0, true);
    file->was_held = true; /* if it never was, the next sweep takes it */
    if (fd < 0)
        return fd;
    put32(call, fd_at, (uint32_t)fd);
    return 0;
}

/* Control. */

static long act_characteristics(struct call *call)
{
    put64(call, 0, 0);
    return 0;
}

static long act_alloc_as(struct call *call)
{
    return new_fd(call, GPU_AS, 4);
}

static long act_open_tsg(struct call *call)
{
    return new_fd(call, GPU_TSG, 0);
}

static long act_open_channel(struct call *call)
{
    return new_fd(call, GPU_CHANNEL, 0);
}

static long act_memory_state(struct call *call)
{
    put64(call, 0, 0); /* no memory of its own */
    return 0;
}

static bool is_dmabuf(const struct call *call, size_t fd_at)
{
    struct file *file = file_of(call->tid, (int)get32(call, fd_at));
    return file && (buffer_of(file) || file->device == FOREIGN);
}

static long act_register_buffer(struct call *call)
{
    return is_dmabuf(call, 0) ? 0 : -EINVAL;
}

static long act_buffer_info(struct call *call)
{
    struct buffer *buffer = buffer_of(file_of(call->tid, (int)get32(call, 0)));
    if (!buffer)
        return -EINVAL;
    put64(call, 16, buffer_bytes(buffer));
    return 0;
}

/* Address spaces. */

static long map(struct call *call, uint8_t *fields)
{
    struct space *space = space_of(call->file);
    struct call one = {.data = fields};
    struct buffer *buffer = buffer_of(file_of(call->tid, (int)get32(&one, 8)));
    if (!buffer)
        return -EINVAL;
    uint64_t offset = get64(&one, 16), bytes = get64(&one, 24), va = get64(&one, 32);
    if (offset > buffer_bytes(buffer))
        return -EINVAL;
    if (bytes == 0)
        bytes = buffer_bytes(buffer) - offset;
    if (bytes == 0 || bytes > buffer_bytes(buffer) - offset)
        return -EINVAL;
    if (!(get32(&one, 0) & FIXED)) {
        if (!space->next_va)
            space->next_va = FIRST_VA;
        do {
            va = space->next_va;
            space->next_va += (bytes + VA_ALIGN - 1) / VA_ALIGN * VA_ALIGN;
        } while (overlaps(space, va, bytes));
    } else if (va % PAGE_BYTES != 0 || overlaps(space, va, bytes)) {
        return -EINVAL;
    }
    struct mapping *mapping = calloc(1, sizeof *mapping);
    if (!mapping)
        return -ENOMEM;
    *mapping = (struct mapping){space->mappings, buffer, va, bytes};
    space->mappings = mapping;
    buffer_pin(buffer);
    put64(&one, 32, va);
    return 0;
}

static long unmap_at(struct call *call, uint64_t va)
{
    struct mapping **link = &space_of(call->file)->mappings;
    while (*link && (*link)->va != va)
        link = &(*link)->next;
    if (!*link)
        return -EINVAL;
    unmap(link);
    return 0;
}

static long act_map(struct call *call)
{
    return map(call, call->data);
}

static long act_unmap(struct call *call)
{
    return unmap_at(call, get64(call, 0));
}

/* First all that goes, then all that comes, up to what fails; the counts say how far it went. */
static long act_batch(struct call *call)
{
    static uint8_t unmaps[MAX_BATCH * UNMAP_SIZE], maps[MAX_BATCH * MAP_SIZE];
    uint64_t unmaps_at = get64(call, 0), maps_at = get64(call, 8);
    uint32_t n_unmaps = get32(call, 16), n_maps = get32(call, 20), i;
    if (n_unmaps > MAX_BATCH || n_maps > MAX_BATCH)
        return -EINVAL;
    if ((n_unmaps && !client_read(call->tid, unmaps_at, unmaps, (size_t)n_unmaps * UNMAP_SIZE)) ||
        (n_maps && !client_read(call->tid, maps_at, maps, (size_t)n_maps * MAP_SIZE)))
        return -EFAULT;
    long result = 0;
    for (i = 0; i < n_unmaps && result == 0; i++) {
        uint64_t va;
        memcpy(&va, unmaps + (size_t)i * UNMAP_SIZE, sizeof va);
        result = unmap_at(call, va);
    }
    for (i = 0; i < n_maps && result == 0; i++)
        result = map(call, maps + (size_t)i * MAP_SIZE);
    if (n_maps && !client_write(call->tid, maps_at, maps, (size_t)n_maps * MAP_SIZE))
        return -EFAULT;
    return result;
}

/* Addresses only. */
static long act_alloc_space(struct call *call)
{
    struct space *space = space_of(call->file);
    uint64_t pages = release == R32 ? get32(call, 0) : get64(call, 0);
    uint64_t page = get32(call, release == R32 ? 4 : 8);
    if (pages == 0 || page < PAGE_BYTES || pages > ((uint64_t)1 << 46) / page)
        return -EINVAL;
    if (!(get32(call, release == R32 ? 8 : 12) & FIXED)) {
        if (!space->next_va)
            space->next_va = FIRST_VA;
        put64(call, 16, space->next_va);
        space->next_va += (pages * page + VA_ALIGN - 1) / VA_ALIGN * VA_ALIGN;
    }
    return 0;
}

static long act_nothing(struct call *call)
{
    (void)call;
    return 0;
}

static long act_bind_channel(struct call *call)
{
    struct file *file = file_of(call->tid, (int)get32(call, 0));
    return file && file->device == GPU_CHANNEL ? 0 : -EINVAL;
}

/* Channels. */

static long act_setup_bind(struct call *call)
{
    if (!is_dmabuf(call, 12) || !is_dmabuf(call, 16))
        return -EINVAL;
    put32(call, 20, 1);
    return 0;
}

static long act_object(struct call *call)
{
    put64(call, 8, 0);
    return 0;
}

#define SAME(number)                                                                                                   \
    {                                                                                                                  \
        number, number, number                                                                                         \
    }
#define OLD(number)                                                                                                    \
    {                                                                                                                  \
        number                                                                                                         \
    }
#define FROM_R35(number)                                                                                               \
    {                                                                                                                  \
        0, number, number                                                                                              \
    }

const struct command ctrl_commands[] = {
    {SAME(0xc0104705), "get_characteristics", act_characteristics},
    {{0xc0104708, 0xc0404708, 0xc0404708}, "alloc_as", act_alloc_as},
    {{0xc0084709, 0xc0084709, 0xc0184709}, "open_tsg", act_open_tsg},
    {SAME(0xc004470b), "open_channel", act_open_channel},
    {SAME(0xc0284721), "get_memory_state", act_memory_state},
    {FROM_R35(0xc0184729), "register_buffer", act_register_buffer},
    {FROM_R35(0xc018472a), "get_buffer_info", act_buffer_info},
    {{0}, NULL, NULL},
};

const struct command as_commands[] = {
    {SAME(0xc0044101), "bind_channel", act_bind_channel},
    {{0xc0104103, 0xc0204103, 0xc0204103}, "free_space", act_nothing},
    {{0xc0184106, 0xc0204106, 0xc0204106}, "alloc_space", act_alloc_space},
    {SAME(0xc0284107), "map_buffer_ex", act_map},
    {SAME(0xc0084105), "unmap_buffer", act_unmap},
    {SAME(0xc020410b), "map_buffer_batch", act_batch},
    {{0}, NULL, NULL},
};

const struct command channel_commands[] = {
    {OLD(0x40084864), "alloc_gpfifo", act_nothing},
    {SAME(0x4020487b), "alloc_gpfifo_ex", act_nothing},
    {{0xc0504880, 0xc0504880, 0xc0684880}, "setup_bind", act_setup_bind},
    {SAME(0xc010486c), "alloc_obj_ctx", act_object},
    {SAME(0xc018486b), "submit_gpfifo", act_nothing},
    {SAME(0xc018486f), "set_error_notifier", act_nothing},
    {{0}, NULL, NULL},
};

const struct command tsg_commands[] = {
    {SAME(0xc018540b), "bind_channel_ex", act_nothing},
    {{0, 0, 0xc0105412}, "create_subcontext", act_nothing},
    {{0}, NULL, NULL},
};
