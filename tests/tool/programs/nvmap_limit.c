/* SPDX-License-Identifier: GPL-2.0-or-later */
/* On a board of r32 a buffer's handle is a descriptor beyond the usual limit of open files. It can be mapped, used, and
 * closed like any other. Then there is nothing but the mapping, then two parts of that, and then nothing. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

/* linux/nvmap.h of L4T r32: NVMAP_IOC_CREATE and NVMAP_IOC_ALLOC */
struct create {
    uint32_t bytes, handle;
};
struct alloc {
    uint32_t handle, heap_mask, flags, align;
};

void jmassif_mark(const char *text) __attribute__((weak));

static void mark(const char *text)
{
    if (jmassif_mark)
        jmassif_mark(text);
}

int main(void)
{
    int nvmap = open("/dev/nvmap", O_RDWR);
    struct create create = {5 << 20, 0};
    if (nvmap < 0 || ioctl(nvmap, _IOWR('N', 0, struct create), &create))
        return 1;
    struct alloc alloc = {create.handle, 1u << 30, 0, 4096};
    if (ioctl(nvmap, _IOW('N', 3, struct alloc), &alloc))
        return 2;
    char *mapped = mmap(NULL, 5 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, (int)create.handle, 0);
    if (mapped == MAP_FAILED)
        return 3;
    memset(mapped, 1, 5 << 20);
    close(nvmap); /* the client's reference goes with it */
    if (close((int)create.handle))
        return 4;
    mark("mapped");
    munmap(mapped + (2 << 20), 1 << 20);
    mark("parted");
    munmap(mapped, 5 << 20);
    mark("gone");
    printf("handle %u\n", create.handle);
    return 0;
}
