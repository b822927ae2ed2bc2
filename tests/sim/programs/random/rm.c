/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Random operations on the resource manager and unified memory, with tables of the objects, ranges and mappings that
 * they made. Memory is committed while any object of it is there; a semaphore pool while its range is. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "random.h"

#define ALLOC_MEMORY 0xc0384627
#define FREE         0xc0104629
#define ALLOC_SHORT  0xc020462b
#define ALLOC        0xc030462b
#define DUP          0xc01c4634
#define VID_HEAP     0xc0b8464a
#define MAP_MEMORY   0xc038464e
#define TRANSFER     0xc01046d3
#define VERSION      0xc04846d2

#define UVM_INITIALIZE     0x30000001
#define UVM_MAP_EXTERNAL   33
#define UVM_FREE           34
#define UVM_SEMAPHORE_POOL 68
#define UVM_EXTERNAL_RANGE 73

enum { CLASS_ROOT = 0x41, CLASS_DEVICE = 0x80, CLASS_SYSTEM = 0x3e, CLASS_LOCAL = 0x40, CLASS_OS_DESCRIPTOR = 0x71 };
enum { MAX_OBJECTS = 512, CROWDED = 200, MAX_FDS = 3, MAX_MAPS = 256, N_PLACES = 128 };
#define PLACE_BYTES ((uint64_t)1 << 20)

typedef uint32_t field32 __attribute__((may_alias));
typedef uint64_t field64 __attribute__((may_alias));
#define F32(structure, offset) (*(field32 *)((char *)(structure) + (offset)))
#define F64(structure, offset) (*(field64 *)((char *)(structure) + (offset)))

struct object {
    bool there;
    uint32_t client, handle, parent;
    int ctl;         /* a client's: which descriptor made it */
    uint64_t memory; /* number; 0: none. Objects of the same memory have the same */
    uint64_t bytes;  /* that it is charged with */
};

/* Of unified memory, with the place in the arena of addresses that it takes. */
struct range {
    bool there, is_pool;
    int uvm;
    uint64_t base, bytes;
};

struct vma {
    bool there, is_managed;
    int uvm; /* -1: the resource manager's */
    uint64_t base, bytes;
};

static struct object objects[MAX_OBJECTS];
static struct range ranges[MAX_MAPS];
static struct vma vmas[MAX_MAPS];
static int ctl[MAX_FDS] = {-1, -1, -1}, uvm[MAX_FDS] = {-1, -1, -1}, gpu = -1;
static uint64_t n_memories;
static uint32_t last_handle;
static char *arena;
static bool place_taken[N_PLACES];
static char own_pages[16 * 4096] __attribute__((aligned(4096)));

uint64_t rm_expected(void)
{
    uint64_t bytes = 0;
    for (int i = 0; i < MAX_OBJECTS; i++) {
        bool first = objects[i].there && objects[i].memory;
        for (int j = 0; first && j < i; j++)
            first = !objects[j].there || objects[j].memory != objects[i].memory;
        bytes += first ? objects[i].bytes : 0;
    }
    for (int i = 0; i < MAX_MAPS; i++)
        bytes += ranges[i].there && ranges[i].is_pool ? ranges[i].bytes : 0;
    return bytes;
}

uint64_t rm_expected_managed(void)
{
    uint64_t bytes = 0;
    for (int i = 0; i < MAX_MAPS; i++)
        bytes += vmas[i].there && vmas[i].is_managed ? vmas[i].bytes : 0;
    return bytes;
}

/* Objects. */

static struct object *object_add(uint32_t client, uint32_t handle, uint32_t parent, uint64_t memory, uint64_t bytes)
{
    for (int i = 0; i < MAX_OBJECTS; i++)
        if (!objects[i].there) {
            objects[i] = (struct object){true, client, handle, parent, -1, memory, bytes};
            return &objects[i];
        }
    MUST(!"room for an object");
    return NULL;
}

enum what { CLIENT, DEVICE, MEMORY };

static bool is_a(const struct object *object, enum what what)
{
    enum what it = object->memory ? MEMORY : object->handle == object->client ? CLIENT : DEVICE;
    return object->there && it == what;
}

static struct object *any(enum what what)
{
    struct object *chosen = NULL;
    uint64_t n = 0;
    for (int i = 0; i < MAX_OBJECTS; i++)
        if (is_a(&objects[i], what) && chance(++n) == 0)
            chosen = &objects[i];
    return chosen;
}

static int any_fd(const int *fds)
{
    int chosen = -1;
    uint64_t n = 0;
    for (int i = 0; i < MAX_FDS; i++)
        if (fds[i] >= 0 && chance(++n) == 0)
            chosen = i;
    return chosen;
}

static int some_ctl(void)
{
    return ctl[any_fd(ctl)];
}

static unsigned n_objects(void)
{
    unsigned n = 0;
    for (int i = 0; i < MAX_OBJECTS; i++)
        n += objects[i].there;
    return n;
}

static void drop_tree(const struct object *root)
{
    struct object top = *root;
    for (int i = 0; i < MAX_OBJECTS; i++) {
        struct object *object = &objects[i];
        if (!object->there || object->client != top.client)
            continue;
        if (object->handle == top.handle)
            object->there = false;
        else if (object->parent == top.handle)
            drop_tree(object);
    }
}

/* Some calls come wrapped. */
static int rm_call(int fd, unsigned long command, void *structure)
{
    uint64_t transfer[2] = {_IOC_SIZE(command) << 0, (uintptr_t)structure};
    F32(transfer, 0) = _IOC_NR(command);
    F32(transfer, 4) = _IOC_SIZE(command);
    return chance(8) ? ioctl(fd, command, structure) : ioctl(fd, TRANSFER, transfer);
}

static uint32_t chosen_handle(void)
{
    return chance(2) ? 0 : 0x5c000000 + ++last_handle;
}

/* The status. */
static uint32_t alloc(uint32_t client, uint32_t parent, uint32_t *handle, uint32_t class, void *parameters)
{
    uint64_t both[6] = {0};
    bool is_short = chance(2);
    F32(both, 0) = client;
    F32(both, 4) = parent;
    F32(both, 8) = *handle;
    F32(both, 12) = class;
    F64(both, 16) = (uintptr_t)parameters;
    MUST(rm_call(some_ctl(), is_short ? ALLOC_SHORT : ALLOC, both) == 0);
    *handle = F32(both, 8);
    return F32(both, is_short ? 28 : 40);
}

/* The client is of the descriptor that it is asked for on. Its handle is the only one of that name on the whole board.
 */
static const char *client_new(void)
{
    uint64_t both[6] = {0};
    int i = any_fd(ctl);
    if (chance(2))
        F32(both, 8) = 0x80000000 | ((uint32_t)getpid() & 0xffff) << 12 | (++last_handle & 0xfff);
    F32(both, 12) = CLASS_ROOT;
    MUST(rm_call(ctl[i], ALLOC, both) == 0 && F32(both, 40) == 0);
    object_add(F32(both, 8), F32(both, 8), 0, 0, 0)->ctl = i;
    return "client";
}

static const char *device_new(void)
{
    struct object *client = any(CLIENT);
    uint32_t handle = chosen_handle();
    if (!client)
        return client_new();
    MUST(alloc(client->client, client->handle, &handle, CLASS_DEVICE, NULL) == 0);
    object_add(client->client, handle, client->handle, 0, 0);
    return "device";
}

/* Memory: three ways to get some. */

static uint64_t some_bytes(void)
{
    return chance(8) ? chance(64 * PAGE) + 1 : chance((uint64_t)4 << 20) + 1;
}

static const char *memory_new(void)
{
    static const uint32_t CLASSES[] = {CLASS_LOCAL, CLASS_SYSTEM, 0x3f, 0x42};
    uint64_t parameters[16] = {0};
    struct object *device = any(DEVICE);
    uint32_t handle = chosen_handle();
    if (!device)
        return device_new();
    F32(parameters, 24) = (uint32_t)chance(4) << 23;
    F64(parameters, 64) = some_bytes();
    MUST(alloc(device->client, device->handle, &handle, CLASSES[chance(4)], parameters) == 0);
    MUST(F64(parameters, 64) % PAGE == 0);
    object_add(device->client, handle, device->handle, ++n_memories, F64(parameters, 64));
    return "alloc";
}

static const char *heap_new(void)
{
    uint64_t both[23] = {0};
    struct object *device = any(DEVICE);
    bool is_virtual = chance(4) == 0;
    if (!device)
        return device_new();
    F32(both, 0) = device->client;
    F32(both, 4) = device->handle;
    F32(both, 8) = 2;
    F32(both, 52) = is_virtual ? 0x00080000 : 0;
    F32(both, 56) = (uint32_t)chance(2) << 25 | (uint32_t)chance(4) << 23;
    F64(both, 88) = some_bytes();
    MUST(rm_call(some_ctl(), VID_HEAP, both) == 0 && F32(both, 20) == 0);
    object_add(device->client, F32(both, 44), device->handle, ++n_memories, is_virtual ? 0 : F64(both, 88));
    return is_virtual ? "heap alloc of addresses" : "heap alloc";
}

static const char *memory_at(void)
{
    uint64_t both[7] = {0};
    struct object *device = any(DEVICE);
    bool wraps = chance(2);
    if (!device)
        return device_new();
    F32(both, 0) = device->client;
    F32(both, 4) = device->handle;
    F32(both, 8) = chosen_handle();
    F32(both, 12) = wraps ? CLASS_OS_DESCRIPTOR : CLASS_SYSTEM;
    F64(both, 24) = wraps ? (uintptr_t)own_pages : 0;
    F64(both, 32) = (chance(16) + 1) * PAGE - 1;
    F32(both, 48) = (uint32_t)-1;
    MUST(rm_call(gpu, ALLOC_MEMORY, both) == 0 && F32(both, 40) == 0);
    object_add(device->client, F32(both, 8), device->handle, ++n_memories, wraps ? 0 : F64(both, 32) + 1);
    return wraps ? "wrap" : "alloc at once";
}

static const char *wrap(void)
{
    uint64_t parameters[5] = {0};
    struct object *device = any(DEVICE);
    uint32_t handle = chosen_handle();
    if (!device)
        return device_new();
    F64(parameters, 16) = (uintptr_t)own_pages;
    F64(parameters, 24) = sizeof own_pages - 1;
    MUST(alloc(device->client, device->handle, &handle, CLASS_OS_DESCRIPTOR, parameters) == 0);
    object_add(device->client, handle, device->handle, ++n_memories, 0);
    return "wrap";
}

static const char *dup_memory(void)
{
    struct object *memory = any(MEMORY), *device = any(DEVICE);
    if (!memory || !device)
        return "none";
    uint32_t both[7] = {device->client, device->handle, chosen_handle(), memory->client, memory->handle, 0, 1};
    MUST(rm_call(some_ctl(), DUP, both) == 0 && both[6] == 0);
    object_add(device->client, both[2], device->handle, memory->memory, memory->bytes);
    return "dup";
}

static const char *free_object(struct object *object)
{
    if (!object)
        return "none";
    if (object->memory && chance(2)) {
        uint64_t heap[23] = {0};
        F32(heap, 0) = object->client;
        F32(heap, 4) = object->parent;
        F32(heap, 8) = 3;
        F32(heap, 44) = object->handle;
        MUST(rm_call(some_ctl(), VID_HEAP, heap) == 0 && F32(heap, 20) == 0);
    } else {
        uint32_t both[4] = {object->client, object->parent, object->handle, 1};
        MUST(rm_call(some_ctl(), FREE, both) == 0 && both[3] == 0);
    }
    bool whole = !object->memory;
    drop_tree(object);
    return whole ? "free all below" : "free";
}

static const char *free_memory(void)
{
    return free_object(any(MEMORY));
}

static const char *free_tree(void)
{
    return free_object(any(chance(3) ? DEVICE : CLIENT));
}

/* Addresses. The arena's places are reserved when nothing is there. */

static char *place_take(void)
{
    for (int i = 0; i < N_PLACES; i++) {
        int at = (int)((chance(N_PLACES) + (uint64_t)i) % N_PLACES);
        if (!place_taken[at]) {
            place_taken[at] = true;
            return arena + (uint64_t)at * PLACE_BYTES;
        }
    }
    return NULL;
}

static void place_give(uint64_t base)
{
    uint64_t place = (base - (uintptr_t)arena) / PLACE_BYTES, end = (uintptr_t)arena + (place + 1) * PLACE_BYTES;
    for (int i = 0; i < MAX_MAPS; i++) {
        if (vmas[i].there && vmas[i].uvm >= 0 && vmas[i].base < end && vmas[i].base >= end - PLACE_BYTES)
            return;
        if (ranges[i].there && ranges[i].base < end && ranges[i].base >= end - PLACE_BYTES)
            return;
    }
    place_taken[place] = false;
}

static void vma_add(bool is_managed, int of_uvm, uint64_t base, uint64_t bytes)
{
    for (int i = 0; i < MAX_MAPS; i++)
        if (!vmas[i].there) {
            vmas[i] = (struct vma){true, is_managed, of_uvm, base, bytes};
            return;
        }
    MUST(!"room for a mapping");
}

static bool maps_crowded(void)
{
    unsigned n = 0;
    for (int i = 0; i < MAX_MAPS; i++)
        n += vmas[i].there + ranges[i].there;
    return n > N_PLACES / 2;
}

static const char *map_memory(void)
{
    struct object *memory = any(MEMORY);
    if (!memory || !memory->bytes || maps_crowded())
        return "none";
    int fd = open(chance(2) ? "/dev/nvidia0" : "/dev/nvidiactl", O_RDWR | O_CLOEXEC);
    uint64_t bytes = (chance(memory->bytes / PAGE) + 1) * PAGE, both[7] = {0};
    MUST(fd >= 0);
    F32(both, 0) = memory->client;
    F32(both, 4) = memory->parent;
    F32(both, 8) = memory->handle;
    F64(both, 24) = bytes;
    F32(both, 48) = (uint32_t)fd;
    MUST(rm_call(some_ctl(), MAP_MEMORY, both) == 0 && F32(both, 40) == 0);
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    MUST(at != MAP_FAILED);
    *at = 1;
    MUST(close(fd) == 0);
    vma_add(false, -1, (uintptr_t)at, bytes);
    return "map";
}

/* What a descriptor of unified memory had ends when it is closed and nothing is mapped from it. */
static void uvm_drop(int of)
{
    if (uvm[of] >= 0)
        return;
    for (int i = 0; i < MAX_MAPS; i++)
        if (vmas[i].there && vmas[i].uvm == of)
            return;
    for (int i = 0; i < MAX_MAPS; i++)
        if (ranges[i].there && ranges[i].uvm == of) {
            ranges[i].there = false;
            place_give(ranges[i].base);
        }
}

static bool uvm_is_gone(int of)
{
    for (int i = 0; i < MAX_MAPS; i++)
        if ((vmas[i].there && vmas[i].uvm == of) || (ranges[i].there && ranges[i].uvm == of))
            return false;
    return uvm[of] < 0;
}

static bool uvm_call(int of, unsigned long command, void *structure, size_t status_at)
{
    return ioctl(uvm[of], command, structure) == 0 && F32(structure, status_at) == 0;
}

static const char *uvm_open(void)
{
    uint64_t initialize[2] = {0};
    for (int i = 0; i < MAX_FDS; i++)
        if (uvm_is_gone(i)) {
            uvm[i] = open("/dev/nvidia-uvm", O_RDWR | O_CLOEXEC);
            MUST(uvm[i] >= 0 && uvm_call(i, UVM_INITIALIZE, initialize, 8));
            return "unified open";
        }
    return "none";
}

static const char *uvm_close(void)
{
    int of = any_fd(uvm);
    if (of < 0)
        return "none";
    MUST(close(uvm[of]) == 0);
    uvm[of] = -1;
    uvm_drop(of);
    return "unified close";
}

static struct range *range_add(int of, bool is_pool, uint64_t base, uint64_t bytes)
{
    for (int i = 0; i < MAX_MAPS; i++)
        if (!ranges[i].there) {
            ranges[i] = (struct range){true, is_pool, of, base, bytes};
            return &ranges[i];
        }
    MUST(!"room for a range");
    return NULL;
}

static const char *pool(void)
{
    static uint64_t both[9248 / 8];
    int of = any_fd(uvm);
    char *at = of < 0 || maps_crowded() ? NULL : place_take();
    if (!at)
        return "none";
    uint64_t bytes = (chance(16) + 1) * PAGE;
    memset(both, 0, sizeof both);
    F64(both, 0) = (uintptr_t)at;
    F64(both, 8) = bytes;
    MUST(uvm_call(of, UVM_SEMAPHORE_POOL, both, release == RM535 ? 1176 : 9240));
    range_add(of, true, (uintptr_t)at, bytes);
    if (chance(2))
        return "pool";
    MUST(mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, uvm[of], (off_t)(uintptr_t)at) == at);
    vma_add(false, of, (uintptr_t)at, bytes);
    return "pool and map";
}

static const char *external(void)
{
    static uint64_t both[9264 / 8];
    int of = any_fd(uvm);
    struct object *memory = any(MEMORY);
    char *at = of < 0 || !memory || !memory->bytes || maps_crowded() ? NULL : place_take();
    if (!at)
        return "none";
    uint64_t bytes = (chance(16) + 1) * PAGE, range[3] = {(uintptr_t)at, bytes, 0};
    size_t end = release == RM535 ? 1200 : 9264;
    MUST(uvm_call(of, UVM_EXTERNAL_RANGE, range, 16));
    range_add(of, false, (uintptr_t)at, bytes);
    memset(both, 0, sizeof both);
    F64(both, 0) = (uintptr_t)at;
    F64(both, 8) = bytes;
    F32(both, end - 12) = memory->client;
    F32(both, end - 8) = memory->handle;
    MUST(uvm_call(of, UVM_MAP_EXTERNAL, both, end - 4));
    return "external range";
}

/* A pool that is mapped goes with its mapping first. */
static const char *range_free(void)
{
    struct range *chosen = NULL;
    uint64_t n = 0;
    for (int i = 0; i < MAX_MAPS; i++) {
        bool mapped = false;
        for (int j = 0; j < MAX_MAPS; j++)
            mapped = mapped || (vmas[j].there && vmas[j].base >= ranges[i].base &&
                                vmas[j].base < ranges[i].base + ranges[i].bytes);
        if (ranges[i].there && !mapped && uvm[ranges[i].uvm] >= 0 && chance(++n) == 0)
            chosen = &ranges[i];
    }
    if (!chosen)
        return "none";
    uint64_t both[3] = {chosen->base, chosen->bytes, 0};
    MUST(uvm_call(chosen->uvm, UVM_FREE, both, 16));
    chosen->there = false;
    place_give(chosen->base);
    return chosen->is_pool ? "pool free" : "external free";
}

static const char *managed(void)
{
    int of = any_fd(uvm);
    char *at = of < 0 || maps_crowded() ? NULL : place_take();
    if (!at)
        return "none";
    uint64_t bytes = (chance(16) + 1) * PAGE;
    FAILS((long)mmap(at, bytes, PROT_READ, MAP_SHARED | MAP_FIXED, uvm[of], (off_t)((uintptr_t)at + PAGE)), EINVAL);
    MUST(mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, uvm[of], (off_t)(uintptr_t)at) == at);
    *at = 1;
    vma_add(true, of, (uintptr_t)at, bytes);
    return "managed";
}

/* In the arena the reservation comes back: over the mapping, or after it. */
static void addresses_give(const struct vma *vma, uint64_t base, uint64_t bytes)
{
    void *at = (void *)(uintptr_t)base;
    if (vma->uvm < 0 || chance(2))
        MUST(munmap(at, bytes) == 0);
    if (vma->uvm >= 0)
        MUST(mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == at);
}

static const char *unmap(void)
{
    struct vma *chosen = NULL;
    uint64_t n = 0;
    for (int i = 0; i < MAX_MAPS; i++)
        if (vmas[i].there && chance(++n) == 0)
            chosen = &vmas[i];
    if (!chosen)
        return "none";
    struct vma vma = *chosen;
    uint64_t bytes = chance(3) ? vma.bytes : (chance(vma.bytes / PAGE) + 1) * PAGE;
    addresses_give(&vma, vma.base, bytes);
    chosen->there = false;
    if (bytes < vma.bytes)
        vma_add(vma.is_managed, vma.uvm, vma.base + bytes, vma.bytes - bytes);
    if (vma.uvm >= 0) {
        uvm_drop(vma.uvm);
        place_give(vma.base);
    }
    return vma.is_managed ? "managed unmap" : "unmap";
}

/* Descriptors. */

static const char *ctl_change(void)
{
    for (int i = 0; i < MAX_FDS; i++)
        if (ctl[i] < 0 && chance(2)) {
            ctl[i] = open("/dev/nvidiactl", O_RDWR | O_CLOEXEC);
            MUST(ctl[i] >= 0);
            return "open";
        }
    int i = any_fd(ctl);
    for (int j = 0; j < MAX_OBJECTS; j++)
        if (is_a(&objects[j], CLIENT) && objects[j].ctl == i)
            drop_tree(&objects[j]);
    MUST(close(ctl[i]) == 0);
    ctl[i] = open("/dev/nvidiactl", O_RDWR | O_CLOEXEC);
    MUST(ctl[i] >= 0);
    return "close and open";
}

static const char *move_device(void)
{
    int *fds = chance(2) ? ctl : uvm, i = any_fd(fds);
    if (!rare || i < 0)
        return "none";
    fds[i] = moved_descriptor(fds[i]);
    return fds == ctl ? "move control" : "move unified";
}

static const char *failing(void)
{
    uint64_t parameters[16] = {0}, both[23] = {0};
    struct object *device = any(DEVICE), *memory = any(MEMORY);
    uint32_t handle = 0;
    F64(parameters, 64) = PAGE;
    switch (chance(6)) {
    case 0:
        MUST(alloc(0xdead, 0xdead, &handle, CLASS_LOCAL, parameters) != 0);
        return "alloc for no client";
    case 1:
        if (!memory || !device)
            return "none";
        handle = memory->handle;
        MUST(alloc(memory->client, memory->parent, &handle, CLASS_LOCAL, parameters) != 0);
        return "alloc of a handle in use";
    case 2:
        FAILS(ioctl(some_ctl(), ALLOC_MEMORY, both), EINVAL); /* only on the GPU's node */
        FAILS(ioctl(some_ctl(), 0xc028462b, both), EINVAL);   /* an older driver's size */
        return "command of another release";
    case 3:
        if (!device)
            return "none";
        F64(parameters, 64) = (uint64_t)1 << 50;
        MUST(alloc(device->client, device->handle, &handle, CLASS_LOCAL, parameters) != 0);
        return "alloc too much";
    case 4:
        F32(both, 8) = 99;
        MUST(rm_call(some_ctl(), VID_HEAP, both) == 0 && F32(both, 20) != 0);
        return "heap does what it cannot";
    default:
        F32(both, 0) = F32(both, 8) = 0xdead;
        MUST(rm_call(some_ctl(), FREE, both) == 0 && F32(both, 12) != 0);
        return "free nothing";
    }
}

static void begin(void)
{
    uint64_t version[9] = {0};
    if (arena)
        return;
    arena = mmap(NULL, N_PLACES * PLACE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    MUST(arena != MAP_FAILED);
    MUST((ctl[0] = open("/dev/nvidiactl", O_RDWR | O_CLOEXEC)) >= 0);
    MUST((gpu = open("/dev/nvidia0", O_RDWR | O_CLOEXEC)) >= 0);
    MUST(ioctl(ctl[0], VERSION, version) == 0);
    uvm_open();
}

/* Opens for itself, takes, and leaves without freeing. */
void rm_child(void)
{
    memset(objects, 0, sizeof objects); /* the parent's */
    for (int i = 0; i < MAX_FDS; i++) {
        if (ctl[i] >= 0)
            close(ctl[i]);
        ctl[i] = -1;
    }
    MUST((ctl[0] = open("/dev/nvidiactl", O_RDWR | O_CLOEXEC)) >= 0);
    for (int i = 0; i < 8; i++)
        memory_new();
    MUST(books_now().committed_bytes > 0);
}

static const char *one_step(void)
{
    static const char *(*const OPERATIONS[])(void) = {
        memory_new, memory_new, memory_new, heap_new,   heap_new,  memory_at,   wrap,    dup_memory,
        dup_memory, map_memory, pool,       external,   external,  managed,     managed, client_new,
        device_new, failing,    uvm_open,   ctl_change, uvm_close, move_device,
    };
    static const char *(*const LETTING_GO[])(void) = {free_memory, free_memory, range_free, unmap};
    if (chance(1000) == 0) {
        if (chance(2)) {
            run_in_child(rm_child);
            return "fork";
        }
        run_in_new_program();
        return "fork and exec";
    }
    if (n_objects() > CROWDED || chance(40) == 0)
        return free_tree();
    if (chance(100) < 40)
        return LETTING_GO[chance(sizeof LETTING_GO / sizeof *LETTING_GO)]();
    size_t chosen = chance(sizeof OPERATIONS / sizeof *OPERATIONS);
    if (chosen >= 19 && chance(20) != 0)
        chosen = 0;
    return OPERATIONS[chosen]();
}

const char *rm_step(void)
{
    const char *name = "none";
    begin();
    for (int i = 0; i < 20 && strcmp(name, "none") == 0; i++)
        name = one_step();
    return name;
}
