/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The Jetson's own: nvmap has the memory, nvgpu the GPU's address space. A device pointer is the address at which the
 * buffer is mapped for the CPU as well. What a context makes, and how often it exports, was counted on an Orin with
 * JetPack 6: 171 buffers, of which 138 the GPU maps, 16 channels, 553 exports; how the bytes spread over them is
 * invented. */
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nodes.h"

enum {
    CONTEXT_BUFFERS = 171,
    CONTEXT_EXPORTS = 553,
    CONTEXT_CHANNELS = 16,
    CONTEXT_SPACES = 4,
    FIXED_OFFSET = 1,
    CACHEABLE = 3,
};
#define HEAP_IOVMM   (1u << 30)
#define NVMAP_FREE   0x00004e04
#define NVMAP_CREATE 0xc0084e00
#define NVMAP_GET_FD 0xc0084e0f
#define AS_MAP       0xc0284107
#define AS_UNMAP     0xc0084105
#define AS_BIND      0xc0044101
#define CHANNEL_OBJ  0xc010486c
#define NO_CALL      0

/* What is not the same in all releases. */
static const struct release {
    const char *ctrl, *before; /* the node to control the GPU; one that the release has not */
    bool by_descriptor;        /* a handle is a descriptor */
    uint32_t alloc, alloc_as, register_buffer, open_channel, setup_bind, alloc_space;
} RELEASES[] = {
    {"/dev/nvhost-ctrl-gpu", "/dev/nvgpu/igpu0/ctrl", true, 0x40104e03, 0xc0104708, NO_CALL, 0xc004470b, 0xc0504880,
     0xc0184106},
    {"/dev/nvhost-ctrl-gpu", NULL, false, 0x40104e03, 0xc0404708, 0xc0184729, 0xc004470b, 0xc0504880, 0xc0204106},
    {"/dev/nvgpu/igpu0/ctrl", NULL, false, 0x40144e03, 0xc0404708, 0xc0184729, 0xc004470b, 0xc0684880, 0xc0204106},
};

/* L4T 39 on an Orin: nvgpu as of r36, and commands of nvmap that name a node of memory. */
#define ALLOC_R39      0x40204e03
#define QUERY_HEAP_R39 0x80304e6c

static const struct release *release;
static uint32_t alloc_call;
static int nvmap = -1, ctrl = -1, space = -1;
static unsigned n_exports;

static bool is_here(const char *path)
{
    int fd = node_open(path);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static bool begin(void)
{
    for (size_t i = 0; !release && i < sizeof RELEASES / sizeof *RELEASES; i++)
        if (is_here(RELEASES[i].ctrl) && (!RELEASES[i].before || !is_here(RELEASES[i].before)))
            release = &RELEASES[i];
    if (!release)
        return false;
    nvmap = node_open("/dev/nvmap");
    ctrl = node_open(release->ctrl);
    uint64_t as[8] = {0};
    FIELD32(as, 0) = 64 << 10; /* large pages */
    uint64_t query[6] = {HEAP_IOVMM};
    alloc_call = nvmap >= 0 && ioctl(nvmap, QUERY_HEAP_R39, query) == 0 ? ALLOC_R39 : release->alloc;
    if (nvmap < 0 || ctrl < 0 || ioctl(ctrl, release->alloc_as, as) != 0)
        return false;
    space = (int)FIELD32(as, 4);
    return true;
}

/* A descriptor of the buffer's dmabuf, to be closed with export_end. */
static int export(const struct object *buffer)
{
    uint32_t both[2] = {0, buffer->u.in_buffer.handle};
    if (release->by_descriptor)
        return (int)buffer->u.in_buffer.handle;
    n_exports++;
    return ioctl(nvmap, NVMAP_GET_FD, both) == 0 ? (int)both[0] : -1;
}

static void export_end(int fd)
{
    if (!release->by_descriptor && fd >= 0)
        close(fd);
}

static bool gpu_map(int fd, uintptr_t *address, size_t bytes, size_t offset)
{
    uint64_t map[5] = {0};
    FIELD32(map, 0) = *address ? FIXED_OFFSET : 0;
    FIELD32(map, 8) = (uint32_t)fd;
    FIELD64(map, 16) = offset;
    FIELD64(map, 24) = bytes;
    FIELD64(map, 32) = *address;
    if (ioctl(space, AS_MAP, map) != 0)
        return false;
    *address = FIELD64(map, 32);
    return true;
}

static void gpu_unmap(uintptr_t address, size_t bytes)
{
    uint64_t at = address;
    (void)bytes;
    ioctl(space, AS_UNMAP, &at);
}

static bool map(const struct object *buffer, int fd, uintptr_t address, size_t bytes, size_t offset)
{
    (void)buffer;
    return gpu_map(fd, &address, bytes, offset);
}

/* The CPU's mapping: at a low address where there must be one. The driver's mappings are not for children. */
static bool cpu_map(struct object *buffer, int fd, bool low)
{
    size_t bytes = buffer->span_bytes;
    void *wanted = low ? (void *)pages_map(bytes, true) : NULL;
    if (low && !wanted)
        return false;
    void *at = mmap(wanted, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | (low ? MAP_FIXED : 0), fd, 0);
    if (at == MAP_FAILED)
        return false;
    madvise(at, bytes, MADV_DONTFORK);
    buffer->address = (uintptr_t)at;
    return true;
}

static void give(struct object *buffer)
{
    if (buffer->u.in_buffer.fd >= 0)
        close(buffer->u.in_buffer.fd);
    if (buffer->u.in_buffer.on_gpu)
        gpu_unmap(buffer->address, buffer->span_bytes);
    if (buffer->u.in_buffer.backing > NO_ADDRESS && buffer->address)
        munmap((void *)buffer->address, buffer->span_bytes);
    if (buffer->u.in_buffer.handle)
        ioctl(nvmap, NVMAP_FREE, (unsigned long)buffer->u.in_buffer.handle);
}

static bool allocate(struct object *buffer, size_t bytes)
{
    uint32_t create[2] = {0}, alloc[8] = {0};
    if (bytes >= (size_t)1 << 32) {
        FIELD64(create, 0) = bytes;
        if (ioctl(nvmap, NVMAP_CREATE + 1, create) != 0)
            return false;
        create[1] = create[0];
    } else {
        create[0] = (uint32_t)bytes;
        if (ioctl(nvmap, NVMAP_CREATE, create) != 0)
            return false;
    }
    alloc[0] = buffer->u.in_buffer.handle = create[1];
    alloc[1] = HEAP_IOVMM;
    alloc[2] = CACHEABLE;
    alloc[3] = 4096;
    if (ioctl(nvmap, alloc_call, alloc) != 0)
        return false;
    if (release->register_buffer) {
        uint64_t registered[3] = {0};
        int fd = export(buffer);
        FIELD32(registered, 0) = (uint32_t)fd;
        int result = ioctl(ctrl, release->register_buffer, registered);
        export_end(fd);
        return result == 0;
    }
    return true;
}

/* Memory that has an address has the same for CPU and GPU. */
static bool take(struct object *buffer, size_t bytes, enum backing backing)
{
    bool mapped = false;
    if (allocate(buffer, bytes)) {
        int fd = export(buffer);
        if (backing == UNMAPPED)
            mapped = true;
        else
            mapped = buffer->u.in_buffer.on_gpu =
                (backing == NO_ADDRESS || cpu_map(buffer, fd, backing == LOW_PAGES)) &&
                gpu_map(fd, &buffer->address, bytes, 0);
        export_end(fd);
    }
    if (!mapped)
        give(buffer);
    return mapped;
}

/* Stays open with whoever maps it. */
static int file(const struct object *buffer)
{
    int fd = export(buffer);
    return release->by_descriptor ? dup(fd) : fd;
}

/* How a context's bytes spread over its buffers; the rest is one more. */
static const struct share {
    unsigned n;
    size_t bytes;
    bool on_gpu;
} SHARES[] = {
    {CONTEXT_CHANNELS, KIB(64), true}, /* what is submitted */
    {CONTEXT_CHANNELS, KIB(4), true},  /* where it is */
    {CONTEXT_CHANNELS, KIB(4), false}, /* what went wrong */
    {17, KIB(4), false},
    {79, KIB(16), true},
    {16, KIB(512), true},
    {10, MIB(1), true},
};

static bool buffers_make(struct object *context, size_t bytes, struct object **made)
{
    for (const struct share *share = SHARES; share < SHARES + sizeof SHARES / sizeof *SHARES; share++)
        for (unsigned n = 0; n < share->n; n++) {
            *made = buffer_take(context, share->bytes, share->on_gpu ? NO_ADDRESS : UNMAPPED);
            if (!*made++)
                return false;
            bytes -= share->bytes;
        }
    *made = buffer_take(context, bytes, NO_ADDRESS);
    return *made;
}

/* A channel ends with the buffer that says what was submitted to it. */
static bool channel_make(struct object *submitted, const struct object *where, const struct object *wrong)
{
    uint32_t channel = 0;
    uint64_t bind[13] = {0}, object[2] = {0xc7c0, 0}; /* Orin's compute class */
    if (ioctl(ctrl, release->open_channel, &channel) != 0)
        return false;
    submitted->u.in_buffer.fd = (int)channel;
    int where_fd = export(where), submitted_fd = export(submitted), wrong_fd = export(wrong);
    FIELD32(bind, 0) = 1024;    /* entries */
    FIELD32(bind, 8) = 1u << 3; /* submitted by the program itself */
    FIELD32(bind, 12) = (uint32_t)where_fd;
    FIELD32(bind, 16) = (uint32_t)submitted_fd;
    bool good = ioctl(space, AS_BIND, &channel) == 0 && ioctl((int)channel, release->setup_bind, bind) == 0 &&
                ioctl((int)channel, CHANNEL_OBJ, object) == 0;
    export_end(where_fd);
    export_end(submitted_fd);
    export_end(wrong_fd);
    return good;
}

static bool context_begin(struct object *context, size_t bytes)
{
    struct object *made[CONTEXT_BUFFERS];
    n_exports = 0;
    for (int i = 0; i < CONTEXT_SPACES; i++) {
        uint64_t addresses[4] = {0};
        FIELD32(addresses, 0) = 1024; /* pages; then their size, which r32 has at another place */
        FIELD32(addresses, release->by_descriptor ? 4 : 8) = 4096;
        if (ioctl(space, release->alloc_space, addresses) != 0)
            return false;
    }
    if (!buffers_make(context, bytes, made))
        return false;
    for (int i = 0; i < CONTEXT_CHANNELS; i++)
        if (!channel_make(made[i], made[i + CONTEXT_CHANNELS], made[i + 2 * CONTEXT_CHANNELS]))
            return false;
    while (!release->by_descriptor && n_exports < CONTEXT_EXPORTS)
        export_end(export(made[0]));
    return true;
}

const struct nodes nodes_nvmap = {begin, take, give, file, map, gpu_unmap, context_begin};
