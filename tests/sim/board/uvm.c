/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Unified memory, /dev/nvidia-uvm: ranges of addresses. Those of an external allocation bind addresses to memory of the
 * resource manager, a semaphore pool is memory of its own, and what is mapped with mmap is managed: addresses, of which
 * nobody here knows how much is there. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "board.h"

enum { STATUS_OK = 0, BAD_ADDRESS = 0x1e, BAD_ARGUMENT = 0x1f, BAD_STATE = 0x40, NO_MEMORY = 0x51, NOT_FOUND = 0x57 };
enum { INITIALIZE = 0x30000001, DEINITIALIZE = 0x30000002, MAX_POOLS = 1024 };

struct range {
    struct range *next;
    uint64_t base, bytes;
    bool is_pool;
    pid_t process;
};

struct unified {
    bool initialized, has_managed;
    struct range *ranges;
};

static struct unified *unified_of(struct file *file)
{
    if (!file->object)
        file->object = calloc(1, sizeof(struct unified));
    if (!file->object)
        abort();
    return file->object;
}

static void range_delete(struct range **link)
{
    struct range *range = *link;
    *link = range->next;
    if (range->is_pool)
        books_give(&books.semaphore_bytes, range->bytes);
    free(range);
}

void uvm_close(struct file *file)
{
    struct unified *unified = unified_of(file);
    while (unified->ranges)
        range_delete(&unified->ranges);
    free(unified);
}

static struct range **range_at(struct unified *unified, uint64_t base)
{
    struct range **link = &unified->ranges;
    while (*link && (*link)->base != base)
        link = &(*link)->next;
    return link;
}

static uint32_t range_new(struct call *call, bool is_pool)
{
    struct unified *unified = unified_of(call->file);
    uint64_t base = get64(call, 0), bytes = get64(call, 8);
    if (base == 0 || bytes == 0 || base % PAGE_BYTES != 0 || bytes % PAGE_BYTES != 0 || base + bytes < base)
        return BAD_ADDRESS;
    for (const struct range *range = unified->ranges; range; range = range->next)
        if (base < range->base + range->bytes && range->base < base + bytes)
            return BAD_ADDRESS;
    struct range *range = calloc(1, sizeof *range);
    if (!range || (is_pool && !books_take(&books.semaphore_bytes, bytes))) {
        free(range);
        return NO_MEMORY;
    }
    *range = (struct range){unified->ranges, base, bytes, is_pool, client_process(call->tid)};
    unified->ranges = range;
    return STATUS_OK;
}

static uint32_t act_initialize(struct call *call)
{
    unified_of(call->file)->initialized = true;
    return STATUS_OK;
}

static uint32_t act_external_range(struct call *call)
{
    return range_new(call, false);
}

static uint32_t act_semaphore_pool(struct call *call)
{
    return range_new(call, true);
}

static uint32_t act_free(struct call *call)
{
    struct range **link = range_at(unified_of(call->file), get64(call, 0));
    if (!*link)
        return BAD_ADDRESS;
    range_delete(link);
    return STATUS_OK;
}

/* The client and the memory are named near the structure's end, which moves with the number of GPUs that fit it. */
static uint32_t act_map_external(struct call *call)
{
    struct unified *unified = unified_of(call->file);
    uint64_t base = get64(call, 0), bytes = get64(call, 8);
    uint32_t client = get32(call, call->size - 12), memory = get32(call, call->size - 8);
    for (const struct range *range = unified->ranges; range; range = range->next)
        if (!range->is_pool && base >= range->base && base + bytes <= range->base + range->bytes)
            return rm_memory_exists(client, memory) ? STATUS_OK : NOT_FOUND;
    return BAD_ADDRESS;
}

static uint32_t act_nothing(struct call *call)
{
    (void)call;
    return STATUS_OK;
}

/* Sizes with 32 slots for GPUs (up to 545), and with 256. */
static const struct uvm_command {
    uint32_t number;
    size_t small, large, status_before_end;
    const char *name;
    uint32_t (*act)(struct call *call);
} COMMANDS[] = {
    {INITIALIZE, 16, 16, 8, "uvm_initialize", act_initialize},
    {33, 1200, 9264, 4, "uvm_map_external_allocation", act_map_external},
    {34, 24, 24, 8, "uvm_free", act_free},
    {37, 40, 40, 0, "uvm_register_gpu", act_nothing},
    {66, 40, 40, 0, "uvm_unmap_external", act_nothing},
    {68, 1184, 9248, 8, "uvm_alloc_semaphore_pool", act_semaphore_pool},
    {73, 24, 24, 8, "uvm_create_external_range", act_external_range},
};

long uvm_ioctl(struct call *call)
{
    const struct uvm_command *command = COMMANDS, *end = COMMANDS + sizeof COMMANDS / sizeof *COMMANDS;
    if (call->command == DEINITIALIZE)
        return 0;
    while (command < end && command->number != call->command)
        command++;
    if (command == end)
        return -EINVAL;
    call->size = release == RM535 ? command->small : command->large;
    if (!client_read(call->tid, call->argument, call->data, call->size))
        return -EFAULT;
    bool ready = command->act == act_initialize || unified_of(call->file)->initialized;
    uint32_t status = ready ? command->act(call) : BAD_STATE;
    if (command->status_before_end) {
        put32(call, call->size - command->status_before_end, status);
        if (!client_write(call->tid, call->argument, call->data, call->size))
            return -EFAULT;
    }
    logged(call, command->name, status);
    return 0;
}

long uvm_mmap(const struct call *call, uint64_t address, uint64_t bytes, uint64_t offset)
{
    struct unified *unified = unified_of(call->file);
    if (!unified->initialized || address != offset)
        return -EINVAL;
    struct range *range = *range_at(unified, address);
    if (range)
        return range->is_pool && bytes <= range->bytes ? 0 : -EINVAL;
    unified->has_managed = true;
    return 0;
}

/* Mappings of the device, but for pools'. */
uint64_t uvm_managed(pid_t tid)
{
    struct extent pools[MAX_POOLS];
    uint64_t bytes = 0;
    for (struct file *file = files; file; file = file->next) {
        if (file->device != UVM || !unified_of(file)->has_managed)
            continue;
        size_t n = 0;
        for (const struct range *range = unified_of(file)->ranges; range && n < MAX_POOLS; range = range->next)
            if (range->is_pool)
                pools[n++] = (struct extent){range->base, range->base + range->bytes};
        bytes += client_mapped(tid, file->inode, pools, n);
    }
    return bytes;
}

uint64_t uvm_bytes_of(pid_t process)
{
    uint64_t bytes = 0;
    for (struct file *file = files; file; file = file->next)
        if (file->device == UVM)
            for (const struct range *range = unified_of(file)->ranges; range; range = range->next)
                bytes += range->is_pool && range->process == process ? range->bytes : 0;
    return bytes;
}
