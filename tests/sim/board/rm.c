/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include "board.h"
long rm_ioctl(struct call *call)
{
    (void)call;
    return -EINVAL;
}
void rm_close(struct file *file)
{
    (void)file;
}
bool rm_memory_exists(uint32_t client, uint32_t memory)
{
    (void)client, (void)memory;
    return false;
}
uint64_t rm_bytes_of(pid_t process)
{
    (void)process;
    return 0;
}
