/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which nodes a release has, and where a call on one of them goes. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include "board.h"

#define ON(release) (1u << (release))
#define IGPU        "/dev/nvgpu/igpu0/"

enum {
    TEGRA = ON(R32) | ON(R35) | ON(R36) | ON(R38) | ON(R39),
    NVHOST = ON(R32) | ON(R35),
    NVGPU = ON(R35) | ON(R36) | ON(R39),
    NVIDIA = ON(R38) | ON(RM535) | ON(RM580),
    EVERY = TEGRA | NVIDIA,
};

static const struct node {
    const char *path;
    enum device device;
    unsigned on;
} NODES[] = {
    {JMSIM_BOARD_NODE, BOARD, EVERY},
    {"/dev/nvmap", NVMAP, TEGRA},
    {"/dev/nvhost-ctrl-gpu", GPU_CTRL, NVHOST},
    {"/dev/nvhost-as-gpu", GPU_AS, NVHOST},
    {"/dev/nvhost-gpu", GPU_CHANNEL, NVHOST},
    {"/dev/nvhost-tsg-gpu", GPU_TSG, NVHOST},
    {"/dev/nvhost-dbg-gpu", GPU_OTHER, NVHOST},
    {"/dev/nvhost-prof-gpu", GPU_OTHER, NVHOST},
    {"/dev/nvhost-sched-gpu", GPU_OTHER, NVHOST},
    {"/dev/nvhost-ctxsw-gpu", GPU_OTHER, NVHOST},
    {IGPU "ctrl", GPU_CTRL, NVGPU},
    {IGPU "as", GPU_AS, NVGPU},
    {IGPU "channel", GPU_CHANNEL, NVGPU},
    {IGPU "tsg", GPU_TSG, NVGPU},
    {IGPU "dbg", GPU_OTHER, NVGPU},
    {IGPU "prof", GPU_OTHER, NVGPU},
    {"/dev/nvidiactl", RM_CTL, NVIDIA},
    {"/dev/nvidia0", RM_GPU, NVIDIA},
    {"/dev/nvidia-uvm", UVM, NVIDIA},
};

static const struct command NO_COMMANDS[] = {{.name = NULL}};

static const struct command *const COMMANDS[] = {
    [NVMAP] = nvmap_commands,         [GPU_CTRL] = ctrl_commands, [GPU_AS] = as_commands,
    [GPU_CHANNEL] = channel_commands, [GPU_TSG] = tsg_commands,   [GPU_OTHER] = NO_COMMANDS,
    [BOARD] = board_commands,         [DMABUF] = NO_COMMANDS,     [FOREIGN] = NO_COMMANDS,
};

enum device device_of(const char *path)
{
    for (size_t i = 0; i < sizeof NODES / sizeof *NODES; i++)
        if ((NODES[i].on & ON(release)) && strcmp(NODES[i].path, path) == 0)
            return NODES[i].device;
    return NO_DEVICE;
}

/* The file of unified memory is as large as the addresses that it is mapped at: 48 bits on arm64, 47 on amd64. */
static uint64_t device_bytes(enum device device)
{
    return device == UVM ? (uint64_t)1 << 48 : 0;
}

long device_open(const struct call *call, struct file **file, enum device device)
{
    books_sweep();
    *file = file_new(device, device_bytes(device));
    if (!*file)
        return -ENFILE;
    machine_knows(client_process(call->tid));
    if (device == NVMAP)
        nvmap_open(*file, client_process(call->tid));
    return 0;
}

void device_closed(struct file *file)
{
    switch (file->device) {
    case NVMAP:
        nvmap_close(file);
        break;
    case GPU_AS:
        as_close(file);
        break;
    case RM_CTL:
    case RM_GPU:
        rm_close(file);
        break;
    case UVM:
        uvm_close(file);
        break;
    default:
        break;
    }
    file_delete(file);
}

static long run_command(struct call *call, const struct command *command)
{
    call->size = _IOC_SIZE(call->command);
    if (call->size && !client_read(call->tid, call->argument, call->data, call->size))
        return -EFAULT;
    long result = command->act(call);
    if (result >= 0 && (_IOC_DIR(call->command) & _IOC_READ) &&
        !client_write(call->tid, call->argument, call->data, call->size))
        return -EFAULT;
    if (command->act != board_commands[0].act)
        logged(call, command->name, result);
    return result;
}

static const struct command *command_of(const struct command *commands, uint32_t number)
{
    enum release form = release != R39 ? release : commands == nvmap_commands ? R38 : R36;
    for (; commands->name; commands++)
        if (commands->number[form] == number)
            return commands;
    return NULL;
}

bool drivers_are_newer;

/* A command of another size than the release's is another command, which there is not. */
long device_ioctl(struct call *call)
{
    const struct command *command = command_of(board_commands, call->command);
    if (command)
        return run_command(call, command);
    if (drivers_are_newer && _IOC_NR(call->command) >= FIRST_NEWER)
        return 0;
    switch (call->file->device) {
    case RM_CTL:
    case RM_GPU:
        return rm_ioctl(call);
    case UVM:
        return uvm_ioctl(call);
    default:
        command = command_of(COMMANDS[call->file->device], call->command);
        return command ? run_command(call, command) : -ENOTTY;
    }
}

static long within(uint64_t offset, uint64_t bytes, uint64_t limit)
{
    return offset <= limit && bytes <= limit - offset ? 0 : -EINVAL;
}

long device_mmap(const struct call *call, uint64_t address, uint64_t bytes, uint64_t offset)
{
    switch (call->file->device) {
    case DMABUF:
        return within(offset, bytes, buffer_bytes(call->file->object));
    case FOREIGN:
        return 0;
    case RM_CTL:
    case RM_GPU:
        return within(offset, bytes, call->file->mapped_bytes);
    case UVM:
        return uvm_mmap(call, address, bytes, offset);
    case CLOSED:
        return -EBADF;
    default:
        return -EPERM;
    }
}
