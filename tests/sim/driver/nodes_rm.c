/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Desktops, servers and the newest Jetsons: the resource manager has the memory, unified memory the addresses. A device
 * pointer is the address at which the memory is mapped for the CPU as well, which a board does for some of it only. A
 * context uses each of the three ways to allocate, and a semaphore pool; how its bytes spread over them is invented. */
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nodes.h"

enum {
    CLASS_ROOT = 0x41,
    CLASS_DEVICE = 0x80,
    CLASS_SUBDEVICE = 0x2080,
    CLASS_CHANNEL = 0xc56f,
    CLASS_SYSTEM = 0x3e,
    CLASS_LOCAL = 0x40,
    CLASS_OS_DESCRIPTOR = 0x71,
    CONTEXT_CHANNELS = 16,
    PAGES_4K = 1,
    PAGES_HUGE = 3,
    LOCATION_PCI = 1,
};

#define RM_ALLOC_MEMORY  0xc0384627
#define RM_FREE          0xc0104629
#define RM_ALLOC         0xc030462b
#define RM_VID_HEAP      0xc0b8464a
#define RM_MAP_MEMORY    0xc038464e
#define RM_REGISTER_FD   0xc00446c9
#define RM_CHECK_VERSION 0xc04846d2

#define UVM_INITIALIZE     0x30000001
#define UVM_MAP_EXTERNAL   33
#define UVM_FREE           34
#define UVM_SEMAPHORE_POOL 68
#define UVM_EXTERNAL_RANGE 73

/* What depends on the driver's version: sizes, as so often. */
static size_t parameters_bytes, external_bytes, pool_bytes;

static int ctl = -1, gpu = -1, uvm = -1;
static uint32_t client, device, memory_class;

/* 0: it failed. */
static uint32_t rm_alloc(uint32_t parent, uint32_t class, void *parameters, size_t bytes)
{
    uint64_t alloc[6] = {0};
    FIELD32(alloc, 0) = client;
    FIELD32(alloc, 4) = parent;
    FIELD32(alloc, 12) = class;
    FIELD64(alloc, 16) = (uintptr_t)parameters;
    FIELD32(alloc, 32) = (uint32_t)bytes;
    return ioctl(ctl, RM_ALLOC, alloc) == 0 && FIELD32(alloc, 40) == 0 ? FIELD32(alloc, 8) : 0;
}

static void rm_free(uint32_t handle)
{
    uint32_t free[4] = {client, device, handle, 0};
    ioctl(ctl, RM_FREE, free);
}

/* Unified memory says how it went at the structure's end, 4 or 8 bytes before it. */
static bool uvm_call(unsigned long command, void *structure, size_t status_at)
{
    return ioctl(uvm, command, structure) == 0 && FIELD32(structure, status_at) == 0;
}

static bool begin(void)
{
    uint64_t version[9] = {0}, initialize[2] = {0};
    ctl = node_open("/dev/nvidiactl");
    if (ctl < 0)
        return false;
    gpu = node_open("/dev/nvidia0");
    uvm = node_open("/dev/nvidia-uvm");
    uint32_t registered = (uint32_t)ctl;
    if (gpu < 0 || uvm < 0 || ioctl(ctl, RM_CHECK_VERSION, version) != 0 ||
        ioctl(gpu, RM_REGISTER_FD, &registered) != 0 || !uvm_call(UVM_INITIALIZE, initialize, 8))
        return false;
    bool old = strncmp((char *)version + 8, "535.", 4) == 0;
    parameters_bytes = old ? 120 : 128;
    external_bytes = old ? 1200 : 9264;
    pool_bytes = old ? 1184 : 9248;
    int nvmap = node_open("/dev/nvmap"); /* a Jetson's GPU has no memory of its own */
    memory_class = nvmap < 0 ? CLASS_LOCAL : CLASS_SYSTEM;
    if (nvmap >= 0)
        close(nvmap);
    client = rm_alloc(0, CLASS_ROOT, NULL, 0);
    device = client ? rm_alloc(client, CLASS_DEVICE, NULL, 0) : 0;
    return device && rm_alloc(device, CLASS_SUBDEVICE, NULL, 0);
}

/* Ranges. */

static bool range_make(uintptr_t address, size_t bytes)
{
    uint64_t range[3] = {address, bytes, 0};
    return uvm_call(UVM_EXTERNAL_RANGE, range, 16);
}

static void range_end(uintptr_t address, size_t bytes)
{
    uint64_t range[3] = {address, bytes, 0};
    ioctl(uvm, UVM_FREE, range);
}

static bool range_bind(uintptr_t address, size_t bytes, size_t offset, uint32_t memory)
{
    static uint64_t map[9264 / 8];
    memset(map, 0, sizeof map);
    FIELD64(map, 0) = address;
    FIELD64(map, 8) = bytes;
    FIELD64(map, 16) = offset;
    FIELD32(map, external_bytes - 16) = (uint32_t)ctl;
    FIELD32(map, external_bytes - 12) = client;
    FIELD32(map, external_bytes - 8) = memory;
    return uvm_call(UVM_MAP_EXTERNAL, map, external_bytes - 4);
}

static bool map(const struct object *buffer, int fd, uintptr_t address, size_t bytes, size_t offset)
{
    (void)fd;
    if (!buffer) /* somebody else's */
        return true;
    if (!range_make(address, bytes))
        return false;
    if (range_bind(address, bytes, offset, buffer->u.in_buffer.handle))
        return true;
    range_end(address, bytes);
    return false;
}

/* Memory. */

static uint32_t memory_new(size_t bytes, bool huge)
{
    uint64_t parameters[16] = {0};
    FIELD32(parameters, 24) =
        (huge ? PAGES_HUGE : PAGES_4K) << 23 | (memory_class == CLASS_SYSTEM ? LOCATION_PCI << 25 : 0);
    FIELD64(parameters, 64) = bytes;
    return rm_alloc(device, memory_class, parameters, parameters_bytes);
}

static uint32_t memory_from_heap(size_t bytes)
{
    uint64_t heap[23] = {0};
    FIELD32(heap, 0) = client;
    FIELD32(heap, 4) = device;
    FIELD32(heap, 8) = 2; /* allocate by size */
    FIELD32(heap, 56) = PAGES_4K << 23 | LOCATION_PCI << 25;
    FIELD64(heap, 88) = bytes;
    return ioctl(ctl, RM_VID_HEAP, heap) == 0 && FIELD32(heap, 20) == 0 ? FIELD32(heap, 44) : 0;
}

static uint32_t memory_at(uint32_t class, uintptr_t address, size_t bytes)
{
    uint64_t alloc[7] = {0};
    FIELD32(alloc, 0) = client;
    FIELD32(alloc, 4) = device;
    FIELD32(alloc, 12) = class;
    FIELD64(alloc, 24) = address;
    FIELD64(alloc, 32) = bytes - 1;
    FIELD32(alloc, 48) = (uint32_t)-1;
    return ioctl(gpu, RM_ALLOC_MEMORY, alloc) == 0 && FIELD32(alloc, 40) == 0 ? FIELD32(alloc, 8) : 0;
}

/* A descriptor that maps the memory. */
static int file(const struct object *buffer)
{
    uint64_t mapping[7] = {0};
    int fd = node_open(memory_class == CLASS_LOCAL ? "/dev/nvidia0" : "/dev/nvidiactl");
    FIELD32(mapping, 0) = client;
    FIELD32(mapping, 4) = device;
    FIELD32(mapping, 8) = buffer->u.in_buffer.handle;
    FIELD64(mapping, 24) = buffer->span_bytes;
    FIELD32(mapping, 48) = (uint32_t)fd;
    if (fd >= 0 && (ioctl(ctl, RM_MAP_MEMORY, mapping) != 0 || FIELD32(mapping, 40) != 0)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static bool cpu_map(struct object *buffer, int fd, bool low)
{
    void *wanted = low ? (void *)pages_map(buffer->span_bytes, true) : NULL;
    if (fd < 0 || (low && !wanted))
        return false;
    void *at = mmap(wanted, buffer->span_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | (low ? MAP_FIXED : 0), fd, 0);
    if (at == MAP_FAILED)
        return false;
    buffer->address = (uintptr_t)at;
    return true;
}

static bool host_make(struct object *buffer)
{
    buffer->address = pages_map(buffer->span_bytes, false);
    if (buffer->address)
        buffer->u.in_buffer.handle = memory_at(CLASS_OS_DESCRIPTOR, buffer->address, buffer->span_bytes);
    return buffer->u.in_buffer.handle;
}

/* The device wants to be mapped at the offset that is the address, so the address is found first. */
static bool unified_map(struct object *buffer)
{
    uintptr_t at = pages_map(buffer->span_bytes, false);
    if (!at)
        return false;
    buffer->address = at;
    return mmap((void *)at, buffer->span_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, uvm, (off_t)at) !=
           MAP_FAILED;
}

static void give(struct object *buffer)
{
    if (buffer->u.in_buffer.on_gpu)
        range_end(buffer->address, buffer->span_bytes);
    if (buffer->address)
        munmap((void *)buffer->address, buffer->span_bytes);
    if (buffer->u.in_buffer.handle)
        rm_free(buffer->u.in_buffer.handle);
}

static bool device_make(struct object *buffer, bool low)
{
    buffer->u.in_buffer.handle = memory_new(buffer->span_bytes, buffer->span_bytes >= MIB(2));
    if (!buffer->u.in_buffer.handle)
        return false;
    int fd = file(buffer);
    bool mapped = cpu_map(buffer, fd, low);
    if (fd >= 0)
        close(fd);
    buffer->u.in_buffer.on_gpu = mapped && map(buffer, -1, buffer->address, buffer->span_bytes, 0);
    return buffer->u.in_buffer.on_gpu;
}

static bool make(struct object *buffer, enum backing backing)
{
    switch (backing) {
    case HOST_PAGES:
        return host_make(buffer);
    case MANAGED_PAGES:
        return unified_map(buffer);
    case UNMAPPED: /* for the system alone */
        buffer->u.in_buffer.handle = memory_from_heap(buffer->span_bytes);
        return buffer->u.in_buffer.handle;
    case NO_ADDRESS:
        buffer->u.in_buffer.handle = memory_new(buffer->span_bytes, false);
        return buffer->u.in_buffer.handle;
    default:
        return device_make(buffer, backing == LOW_PAGES);
    }
}

static bool take(struct object *buffer, size_t bytes, enum backing backing)
{
    (void)bytes;
    bool made = make(buffer, backing);
    if (!made)
        give(buffer);
    return made;
}

/* Contexts. */

static struct object *buffer_of_context(struct object *context, size_t bytes)
{
    struct object *buffer = object_new(DRIVER_BUFFER);
    if (!buffer)
        return NULL;
    buffer->u.in_buffer.fd = -1;
    buffer->span_bytes = bytes;
    buffer->after = context->buffers;
    context->buffers = buffer;
    return buffer;
}

static bool pool_make(struct object *context, size_t bytes)
{
    static uint64_t pool[9248 / 8];
    struct object *buffer = buffer_of_context(context, bytes);
    if (!buffer || !(buffer->address = pages_map(bytes, false)))
        return false;
    memset(pool, 0, sizeof pool);
    FIELD64(pool, 0) = buffer->address;
    FIELD64(pool, 8) = bytes;
    buffer->u.in_buffer.on_gpu = uvm_call(UVM_SEMAPHORE_POOL, pool, pool_bytes - 8);
    return buffer->u.in_buffer.on_gpu && mmap((void *)buffer->address, bytes, PROT_READ | PROT_WRITE,
                                              MAP_SHARED | MAP_FIXED, uvm, (off_t)buffer->address) != MAP_FAILED;
}

static bool channel_make(struct object *context)
{
    struct object *buffer = buffer_of_context(context, 0);
    if (buffer)
        buffer->u.in_buffer.handle = rm_alloc(device, CLASS_CHANNEL, NULL, 0);
    return buffer && buffer->u.in_buffer.handle;
}

static bool notifier_make(struct object *context, size_t bytes)
{
    struct object *buffer = buffer_of_context(context, bytes);
    if (buffer)
        buffer->u.in_buffer.handle = memory_at(CLASS_SYSTEM, 0, bytes);
    return buffer && buffer->u.in_buffer.handle;
}

static bool context_begin(struct object *context, size_t bytes)
{
    enum { N_LARGE = 4 };
    for (int i = 0; i < CONTEXT_CHANNELS; i++) {
        if (!channel_make(context) || !buffer_take(context, KIB(64), UNMAPPED) || !notifier_make(context, KIB(4)))
            return false;
        bytes -= KIB(64) + KIB(4);
    }
    if (!pool_make(context, KIB(64)))
        return false;
    bytes -= KIB(64);
    for (int i = 0; i < N_LARGE; i++) {
        if (!buffer_take(context, MIB(2), NO_ADDRESS))
            return false;
        bytes -= MIB(2);
    }
    return buffer_take(context, bytes, NO_ADDRESS);
}

const struct nodes nodes_rm = {begin, take, give, file, map, range_end, context_begin};
