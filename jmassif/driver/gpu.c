// SPDX-License-Identifier: GPL-2.0-or-later
//
// nvgpu, the GPU's driver on Tegra (r32 to r36). It maps nvmap's buffers into the GPU's address spaces, which keeps the
// buffers alive and gives the memory behind a device pointer. Page tables and memory of contexts have no size in any
// ioctl, so the channels and address spaces that need them are counted instead.

#include "base/array.h"
#include "base/client_memory.h"
#include "base/kernel.h"
#include "driver/decoders.h"

typedef enum { NEW_FILE, NEW_MEMORY, MAP, UNMAP, BATCH, KEEP } GpuAction;

typedef struct {
    UInt number;
    UChar action;
    UChar fd; // offset of the descriptor
    UChar type;
    UChar second_fd;
} GpuCommand;

// Layouts of the public headers include/uapi/linux/nvgpu.h of r32.7, r35 and r36.
static const GpuCommand commands[] = {
    {0xc0104708, NEW_FILE, .fd = 4, .type = FILE_GPU_SPACE},
    {0xc0404708, NEW_FILE, .fd = 4, .type = FILE_GPU_SPACE},
    {0xc0084709, NEW_FILE, .fd = 0, .type = FILE_GPU_TSG},
    {0xc0184709, NEW_FILE, .fd = 0, .type = FILE_GPU_TSG},
    {0xc004470b, NEW_FILE, .fd = 0, .type = FILE_GPU_CHANNEL},
    {0xc020471b, NEW_MEMORY, .fd = 0, .type = FILE_BUFFER},
    {0xc0284107, MAP, .fd = 8},
    {0xc0084105, .action = UNMAP},
    {0xc020410b, .action = BATCH},
    {0xc0504880, KEEP, .fd = 12, .second_fd = 16}, // a channel's queue
    {0xc0684880, KEEP, .fd = 12, .second_fd = 16},
};

// The last number of each magic letter in r36's headers. An ioctl up to it commits nothing, unless it is in the table
// above or has the number of a row there with another size.
static const struct {
    UChar magic, last;
} known[] = {{'G', 48}, {'A', 14}, {'T', 21}, {'H', 128}};

#define USERMODE_SUBMIT 8 // flag of a channel's queue: the program provides the buffers

static DriverMap *map_of(DriverFile *space)
{
    if (!space->object)
        space->object = jm_driver_map_new();
    return space->object;
}

// Structure of MAP_BUFFER_EX: descriptor at 8, offset in the buffer at 16, bytes at 24 (0: the rest), address at 32.
static void map_buffer(ThreadId tid, DriverFile *space, UInt fd, ULong offset, ULong bytes, Addr address)
{
    DriverFile *buffer = jm_driver_fd(fd);
    if (!buffer)
        buffer = jm_driver_file_behind(fd);
    if (!buffer || buffer->type != FILE_BUFFER) {
        jm_driver_count(ODD_UNKNOWN_HANDLE);
        return;
    }
    if (!bytes)
        bytes = buffer->bytes > offset ? buffer->bytes - offset : 0;
    jm_driver_map_add(tid, map_of(space), address, bytes, buffer, buffer->memory);
}

// (address of unmaps, address of maps, count of each): 8 bytes an unmap, a structure of MAP_BUFFER_EX a map
static void batch(ThreadId tid, const DriverCall *call)
{
    for (UInt i = 0; i < jm_driver_in32(call, 16); i++) {
        UWord address;
        if (jm_read_word(jm_driver_in64(call, 0) + 8 * i, &address))
            jm_driver_map_remove_at(tid, map_of(call->file), address);
    }
    for (UInt i = 0; i < jm_driver_in32(call, 20); i++) {
        ULong words[5];
        if (jm_read_bytes(jm_driver_in64(call, 8) + sizeof words * i, words, sizeof words))
            map_buffer(tid, call->file, (UInt)words[1], words[2], words[3], words[4]);
    }
}

// Keeps a buffer alive until the channel ends.
static void keep(ThreadId tid, DriverFile *channel, UInt fd)
{
    DriverFile *buffer = jm_driver_fd(fd);
    if (!buffer || buffer->type != FILE_BUFFER)
        return;
    if (!channel->object)
        channel->object = jm_array_new("jm.driver.gpu", sizeof(DriverFile *));
    jm_driver_file_hold(buffer);
    jm_array_add(channel->object, &buffer);
}

void jm_gpu_channel_ended(ThreadId tid, DriverFile *channel)
{
    Array *kept = channel->object;
    for (Word i = 0; kept && i < jm_array_n(kept); i++)
        jm_driver_file_release(tid, *(DriverFile **)jm_array_at(kept, i));
    if (kept)
        jm_array_delete(kept);
}

void jm_gpu_space_ended(ThreadId tid, DriverFile *space)
{
    if (space->object)
        jm_driver_map_delete(tid, space->object);
}

void jm_gpu_after(ThreadId tid, DriverCall *call, Long result)
{
    if (jm_is_error(result))
        return;
    const GpuCommand *command = JM_ROW(commands, c, c->number == call->command);
    if (!command) {
        if (JM_ROW(commands, c, (c->number & 0xffff) == (call->command & 0xffff)) ||
            !JM_ROW(known, k, k->magic == (call->command >> 8 & 0xff) && (call->command & 0xff) <= k->last))
            jm_driver_unknown(call, call->command);
        return;
    }
    DriverFile *file;
    switch ((GpuAction)command->action) {
    case NEW_FILE:
        jm_driver_fd_set(tid, jm_driver_out32(call, command->fd), jm_driver_file_new(command->type));
        break;
    case NEW_MEMORY:
        file = jm_driver_file_new(FILE_BUFFER);
        file->bytes = HOST_PAGE_UP(jm_driver_in64(call, 0));
        file->memory = jm_driver_memory_commit(tid, KIND_DRIVER, file->bytes);
        jm_driver_fd_set(tid, jm_driver_out32(call, command->fd), file);
        break;
    case MAP:
        map_buffer(tid, call->file, jm_driver_in32(call, command->fd), jm_driver_in64(call, 16),
                   jm_driver_in64(call, 24), jm_driver_out64(call, 32));
        break;
    case UNMAP:
        jm_driver_map_remove_at(tid, map_of(call->file), jm_driver_in64(call, 0));
        break;
    case BATCH:
        batch(tid, call);
        break;
    case KEEP:
        if (jm_driver_in32(call, 8) & USERMODE_SUBMIT) {
            keep(tid, call->file, jm_driver_in32(call, command->fd));
            keep(tid, call->file, jm_driver_in32(call, command->second_fd));
        }
        break;
    }
}
