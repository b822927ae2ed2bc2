/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A process with 3 MiB of nvmap's memory, and its child, which lets go of none of that and takes 1 MiB of its own. Both
 * end with what they have. */
#include <fcntl.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* linux/nvmap.h of L4T r35: NVMAP_IOC_CREATE and NVMAP_IOC_ALLOC */
struct create {
    uint32_t bytes, handle;
};
struct alloc {
    uint32_t handle, heap_mask, flags, align;
};

static int take(uint32_t bytes)
{
    int nvmap = open("/dev/nvmap", O_RDWR);
    struct create create = {bytes, 0};
    if (nvmap < 0 || ioctl(nvmap, _IOWR('N', 0, struct create), &create))
        return 1;
    struct alloc alloc = {create.handle, 1u << 30, 0, 4096};
    return ioctl(nvmap, _IOW('N', 3, struct alloc), &alloc) != 0;
}

int main(void)
{
    if (take(3 << 20))
        return 1;
    pid_t child = fork();
    if (child == 0)
        return take(1 << 20);
    int status;
    return child < 0 || waitpid(child, &status, 0) != child || status != 0;
}
