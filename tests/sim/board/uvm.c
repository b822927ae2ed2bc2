/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include "board.h"
long uvm_ioctl(struct call *call)
{
    (void)call;
    return -EINVAL;
}
void uvm_close(struct file *file)
{
    (void)file;
}
long uvm_mmap(const struct call *call, uint64_t address, uint64_t bytes, uint64_t offset)
{
    (void)call, (void)address, (void)bytes, (void)offset;
    return -EINVAL;
}
uint64_t uvm_managed(pid_t tid)
{
    (void)tid;
    return 0;
}
uint64_t uvm_bytes_of(pid_t process)
{
    (void)process;
    return 0;
}
