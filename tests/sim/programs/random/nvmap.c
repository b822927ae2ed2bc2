/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Random operations on nvmap and nvgpu, and a table of every reference that they made: a buffer's bytes are committed
 * while one is left. The table is searched from end to end each time; nothing in it is derived. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "random.h"

#define HEAP_IOVMM (1u << 30)
#define HEAP_GPU   (1u << 3)
#define FREE       0x00004e04
#define CREATE     0xc0084e00
#define CREATE_64  0xc0084e01
#define GET_FD     0xc0084e0f
#define FROM_FD    0xc0084e10
#define FROM_VA    0xc0184e16
#define DUP_HANDLE 0xc00c4e6a
#define AS_MAP     0xc0284107
#define AS_UNMAP   0xc0084105
#define AS_BATCH   0xc020410b

enum { MAX_REFERENCES = 512, CROWDED = 250, FULL = 400, MAX_BUFFERS = 1 << 18, MAX_PAGES = 64, MAX_DEVICES = 4 };

enum kind {
    NOTHING,
    HANDLE,    /* a client's number; r32: a client's reference, by no number of its own */
    FD,        /* of a dmabuf */
    VMA,       /* a mapping for the CPU */
    MAPPING,   /* in a GPU address space */
    FOREIGN_FD /* of a dmabuf that is not nvmap's */
};

struct reference {
    enum kind kind;
    int device; /* whose: index of a client or an address space */
    uint32_t buffer;
    uint64_t value, bytes;
};

struct buffer {
    uint64_t bytes, charge;
    bool allocated;
};

/* Clients and address spaces. From r36 on the opens of a process are one client. */
struct device {
    int fd[MAX_DEVICES];
    bool open[MAX_DEVICES];
    int n;
};

static struct reference references[MAX_REFERENCES];
static struct buffer buffers[MAX_BUFFERS];
static uint32_t n_buffers;
static struct device clients, spaces;
static int ctrl = -1;
static char pages[MAX_PAGES * 4096] __attribute__((aligned(4096)));

uint64_t nvmap_expected(void)
{
    uint64_t bytes = 0;
    for (uint32_t buffer = 0; buffer < n_buffers; buffer++) {
        bool held = false;
        if (!buffers[buffer].charge)
            continue;
        for (size_t i = 0; i < MAX_REFERENCES && !held; i++)
            held = references[i].kind && references[i].kind != FOREIGN_FD && references[i].buffer == buffer;
        if (held)
            bytes += buffers[buffer].charge;
        else
            buffers[buffer].charge = 0; /* it cannot come back */
    }
    return bytes;
}

static unsigned n_references(void)
{
    unsigned n = 0;
    for (size_t i = 0; i < MAX_REFERENCES; i++)
        n += references[i].kind != NOTHING;
    return n;
}

static struct reference *reference_add(enum kind kind, int device, uint32_t buffer, uint64_t value, uint64_t bytes)
{
    for (size_t i = 0; i < MAX_REFERENCES; i++)
        if (!references[i].kind) {
            references[i] = (struct reference){kind, device, buffer, value, bytes};
            return &references[i];
        }
    MUST(!"room for a reference");
    return NULL;
}

static struct reference *any(enum kind kind)
{
    struct reference *chosen = NULL;
    uint64_t n = 0;
    for (size_t i = 0; i < MAX_REFERENCES; i++)
        if (references[i].kind == kind && chance(++n) == 0)
            chosen = &references[i];
    return chosen;
}

static int any_of(const struct device *device)
{
    int chosen = -1;
    uint64_t n = 0;
    for (int i = 0; i < MAX_DEVICES; i++)
        if (device->open[i] && chance(++n) == 0)
            chosen = i;
    return chosen;
}

/* r36 and later: which client an open belongs to does not matter. */
static int owner(int client)
{
    return release >= R36 ? 0 : client;
}

static void drop_all_of(enum kind kind, int device)
{
    for (size_t i = 0; i < MAX_REFERENCES; i++)
        if (references[i].kind == kind && references[i].device == device)
            references[i].kind = NOTHING;
}

/* Devices. */

static void device_add(struct device *device, int fd)
{
    for (int i = 0; i < MAX_DEVICES; i++)
        if (!device->open[i]) {
            device->open[i] = true;
            device->fd[i] = fd;
            device->n++;
            return;
        }
}

static int node(const char *path)
{
    return open(path, O_RDWR | O_CLOEXEC);
}

static int space_open(void)
{
    uint64_t alloc[8] = {0};
    if (release == R32 && chance(2))
        return node("/dev/nvhost-as-gpu");
    MUST(ioctl(ctrl, release == R32 ? 0xc0104708 : 0xc0404708, alloc) == 0);
    return (int)(alloc[0] >> 32);
}

static const char *client_open(void)
{
    if (clients.n == MAX_DEVICES)
        return "none";
    int fd = node("/dev/nvmap");
    MUST(fd >= 0);
    device_add(&clients, fd);
    return "client open";
}

static const char *client_close(void)
{
    int client = any_of(&clients);
    MUST(close(clients.fd[client]) == 0);
    clients.open[client] = false;
    clients.n--;
    if (release < R36 || clients.n == 0)
        drop_all_of(HANDLE, owner(client));
    if (clients.n == 0)
        client_open();
    return "client close";
}

static const char *space_change(void)
{
    if (release == R38)
        return "none";
    if (spaces.n < MAX_DEVICES && chance(2)) {
        int fd = space_open();
        MUST(fd >= 0);
        device_add(&spaces, fd);
        return "space open";
    }
    int space = any_of(&spaces);
    if (space < 0)
        return "none";
    MUST(close(spaces.fd[space]) == 0);
    spaces.open[space] = false;
    spaces.n--;
    drop_all_of(MAPPING, space);
    return "space close";
}

static void begin(void)
{
    if (clients.n)
        return;
    client_open();
    if (release == R38)
        return;
    ctrl = node(release == R36 ? "/dev/nvgpu/igpu0/ctrl" : "/dev/nvhost-ctrl-gpu");
    MUST(ctrl >= 0);
    device_add(&spaces, space_open());
}

/* Handles. */

/* A client's handle of a buffer: on r32 a descriptor as well. */
static struct reference *handle_add(int client, uint32_t buffer, uint32_t handle)
{
    if (release == R32)
        reference_add(FD, -1, buffer, handle, 0);
    return reference_add(HANDLE, owner(client), buffer, release == R32 ? 0 : handle, 0);
}

/* What a client calls a buffer that it has a reference to; 0 if it has no name for it left. */
static uint32_t name_of(const struct reference *handle)
{
    if (release != R32)
        return (uint32_t)handle->value;
    for (size_t i = 0; i < MAX_REFERENCES; i++)
        if (references[i].kind == FD && references[i].buffer == handle->buffer)
            return (uint32_t)references[i].value;
    return 0;
}

/* An open of the client that has the handle. */
static int client_fd(const struct reference *handle)
{
    return clients.fd[release >= R36 ? any_of(&clients) : handle->device];
}

static uint32_t create_call(int fd, uint64_t bytes)
{
    if (chance(2)) {
        uint64_t both = bytes;
        MUST(ioctl(fd, CREATE_64, &both) == 0);
        return (uint32_t)both;
    }
    uint32_t both[2] = {(uint32_t)bytes, 0};
    MUST(ioctl(fd, CREATE, both) == 0);
    return both[1];
}

static int alloc_call(int fd, uint32_t handle, uint32_t heap, uint64_t va)
{
    static const uint32_t ALLOC[] = {0x40104e03, 0x40104e03, 0x40144e03, 0x40204e03};
    uint32_t alloc[8] = {handle, heap, 3, 4096};
    memcpy(alloc + 6, &va, sizeof va);
    return ioctl(fd, ALLOC[release], alloc);
}

/* On the GPU's heap r36 rounds as the heap says; on r38 the pages are the program's own. */
static const char *alloc_one(struct reference *handle)
{
    uint32_t name = handle ? name_of(handle) : 0;
    if (!name)
        return "none";
    struct buffer *buffer = &buffers[handle->buffer];
    bool gpu_heap = release >= R36 && chance(8) == 0;
    uint64_t granule = PAGE;
    int fd = client_fd(handle);
    if (buffer->allocated) {
        FAILS(alloc_call(fd, name, HEAP_IOVMM, 0), EEXIST);
        return "alloc twice";
    }
    MUST(alloc_call(fd, name, gpu_heap ? HEAP_GPU : HEAP_IOVMM, gpu_heap ? (uintptr_t)pages : 0) == 0);
    if (gpu_heap) {
        uint32_t query[12] = {HEAP_GPU};
        MUST(ioctl(fd, 0x80304e69, query) == 0);
        granule = query[10];
    }
    buffer->allocated = true;
    buffer->charge = gpu_heap && release == R38 ? 0 : (buffer->bytes + granule - 1) / granule * granule;
    return gpu_heap ? "alloc on the GPU's heap" : "alloc";
}

static const char *alloc(void)
{
    return alloc_one(any(HANDLE));
}

static const char *create(void)
{
    int client = any_of(&clients);
    uint64_t bytes = chance(MAX_PAGES * PAGE) + 1;
    MUST(n_buffers < MAX_BUFFERS);
    uint32_t handle = create_call(clients.fd[client], bytes);
    buffers[n_buffers] = (struct buffer){(bytes + PAGE - 1) / PAGE * PAGE, 0, false};
    struct reference *added = handle_add(client, n_buffers, handle);
    n_buffers++;
    return chance(4) ? alloc_one(added) : "create";
}

static const char *free_handle(void)
{
    struct reference *handle = any(HANDLE);
    uint32_t name = handle ? name_of(handle) : 0;
    if (!name)
        return "none";
    MUST(ioctl(client_fd(handle), FREE, (unsigned long)name) == 0);
    for (size_t i = 0; release == R32 && i < MAX_REFERENCES; i++)
        if (references[i].kind == FD && references[i].value == name)
            references[i].kind = NOTHING;
    handle->kind = NOTHING;
    return "free";
}

static const char *from_va(void)
{
    int client = any_of(&clients);
    uint64_t n = chance(MAX_PAGES - 1) + 1, wrap[3] = {(uintptr_t)pages};
    bool wide = chance(2);
    if (wide)
        wrap[2] = n * PAGE;
    else
        wrap[1] = n * PAGE;
    MUST(ioctl(clients.fd[client], FROM_VA, wrap) == 0);
    buffers[n_buffers] = (struct buffer){n * PAGE, 0, true};
    handle_add(client, n_buffers, (uint32_t)wrap[2]);
    n_buffers++;
    return "wrap";
}

static const char *dup_handle(void)
{
    struct reference *handle = any(HANDLE);
    if (release == R32 || !handle || !buffers[handle->buffer].allocated)
        return "none";
    uint32_t dup[3] = {(uint32_t)handle->value, 3, 0};
    MUST(ioctl(client_fd(handle), DUP_HANDLE, dup) == 0);
    reference_add(HANDLE, handle->device, handle->buffer, dup[2], 0);
    return "dup handle";
}

/* Descriptors. */

static const char *get_fd(void)
{
    struct reference *handle = any(HANDLE);
    uint32_t name = handle ? name_of(handle) : 0;
    if (!name)
        return "none";
    uint32_t both[2] = {0, name};
    MUST(ioctl(client_fd(handle), GET_FD, both) == 0);
    reference_add(FD, -1, handle->buffer, both[0], 0);
    return "get fd";
}

static const char *from_fd(void)
{
    struct reference *fd = any(FD);
    if (!fd)
        return "none";
    int client = any_of(&clients);
    uint32_t both[2] = {(uint32_t)fd->value, 0};
    if (!buffers[fd->buffer].allocated) {
        FAILS(ioctl(clients.fd[client], FROM_FD, both), EINVAL);
        return "import too early";
    }
    MUST(ioctl(clients.fd[client], FROM_FD, both) == 0);
    handle_add(client, fd->buffer, both[1]);
    return "import";
}

static const char *close_fd(void)
{
    struct reference *fd = any(chance(3) ? FD : FOREIGN_FD);
    if (!fd || (fd->kind == FD && release == R32 && chance(2))) /* there it is FREE that closes, as a rule */
        return "none";
    if (chance(4) || syscall(SYS_close_range, (unsigned)fd->value, (unsigned)fd->value, 0) != 0)
        MUST(close((int)fd->value) == 0);
    fd->kind = NOTHING;
    return "close";
}

static const char *dup_fd(void)
{
    struct reference *fd = any(FD), *other = any(FD);
    if (!fd)
        return "none";
    int from = (int)fd->value, to = -1;
    struct rlimit limit;
    const char *name = "dup";
    switch (chance(5)) {
    case 0:
        to = dup(from);
        break;
    case 1:
        to = fcntl(from, F_DUPFD_CLOEXEC, 100);
        name = "fcntl";
        break;
    case 2:
        to = fcntl(from, F_DUPFD, 3);
        name = "fcntl";
        break;
    case 3:
    case 4: /* onto another, which that closes; not above the limit, where only the driver puts them */
        MUST(getrlimit(RLIMIT_NOFILE, &limit) == 0);
        if (other == fd || other->value >= limit.rlim_cur)
            return "none";
        to = chance(2) ? dup2(from, (int)other->value) : dup3(from, (int)other->value, O_CLOEXEC);
        MUST(to == (int)other->value);
        other->buffer = fd->buffer;
        return "dup onto";
    }
    MUST(to >= 0);
    reference_add(FD, -1, fd->buffer, (uint64_t)to, 0);
    return name;
}

/* The same description by another number. */
int moved_descriptor(int fd)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 50);
    MUST(copy >= 0 && close(fd) == 0);
    return copy;
}

static const char *move_device(void)
{
    struct device *device = chance(2) ? &clients : &spaces;
    int i = any_of(device);
    if (!rare || i < 0)
        return "none";
    device->fd[i] = moved_descriptor(device->fd[i]);
    return device == &clients ? "move client" : "move space";
}

static const char *foreign(void)
{
    struct jmsim_foreign made = {chance(MAX_PAGES) * PAGE + PAGE, -1, 0};
    MUST(ioctl(board, JMSIM_BOARD_FOREIGN, &made) == 0);
    uint32_t both[2] = {(uint32_t)made.fd, 0};
    MUST(ioctl(clients.fd[any_of(&clients)], FROM_FD, both) == 0);
    reference_add(FOREIGN_FD, -1, 0, (uint64_t)made.fd, 0);
    reference_add(FOREIGN_FD, -1, 0, both[1], 0);
    return "import foreign";
}

/* Mappings. A child does not have the driver's. */

static const char *map(void)
{
    struct reference *fd = any(FD);
    if (!fd || !buffers[fd->buffer].allocated)
        return "none";
    uint64_t n = buffers[fd->buffer].bytes / PAGE, first = chance(2) ? 0 : chance(n), count = chance(n - first) + 1;
    char *at = mmap(NULL, count * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, (int)fd->value, (off_t)(first * PAGE));
    MUST(at != MAP_FAILED);
    MUST(madvise(at, count * PAGE, MADV_DONTFORK) == 0);
    *at = 1;
    reference_add(VMA, -1, fd->buffer, (uintptr_t)at, count * PAGE);
    return "map";
}

/* The whole, one end, or the middle. */
static const char *unmap(void)
{
    struct reference *vma = any(VMA);
    if (!vma)
        return "none";
    uint64_t n = vma->bytes / PAGE, first = chance(2) ? 0 : chance(n),
             count = chance(2) ? n - first : chance(n - first) + 1;
    uint64_t start = vma->value, end = vma->value + vma->bytes;
    uint32_t buffer = vma->buffer;
    MUST(munmap((void *)(uintptr_t)(start + first * PAGE), count * PAGE) == 0);
    vma->kind = NOTHING;
    if (first)
        reference_add(VMA, -1, buffer, start, first * PAGE);
    if (first + count < n)
        reference_add(VMA, -1, buffer, start + (first + count) * PAGE, end - start - (first + count) * PAGE);
    return "unmap";
}

/* Shorter, or somewhere else. */
static const char *gpu_map(void)
{
    struct reference *fd = any(FD);
    int space = any_of(&spaces);
    if (!fd || space < 0)
        return "none";
    uint64_t bytes = buffers[fd->buffer].bytes, va = chance(2) ? 0 : ((uint64_t)1 << 40) + chance(1 << 20) * (1 << 20);
    uint64_t one[5] = {va != 0, (uint32_t)fd->value, chance(2) ? 0 : PAGE * chance(bytes / PAGE), 0, va};
    for (size_t i = 0; va && i < MAX_REFERENCES; i++)
        if (references[i].kind == MAPPING && references[i].value == va)
            return "none";
    if (!buffers[fd->buffer].allocated) {
        FAILS(ioctl(spaces.fd[space], AS_MAP, one), EINVAL);
        return "GPU map too early";
    }
    MUST(ioctl(spaces.fd[space], AS_MAP, one) == 0);
    reference_add(MAPPING, space, fd->buffer, one[4], 0);
    return "GPU map";
}

static const char *gpu_unmap(void)
{
    struct reference *mapping = any(MAPPING);
    if (!mapping)
        return "none";
    MUST(ioctl(spaces.fd[mapping->device], AS_UNMAP, &mapping->value) == 0);
    mapping->kind = NOTHING;
    return "GPU unmap";
}

static const char *gpu_batch(void)
{
    struct reference *gone = any(MAPPING), *fd = any(FD);
    if (!gone || !fd || !buffers[fd->buffer].allocated)
        return "none";
    uint64_t unmaps[1] = {gone->value}, maps[2][5];
    for (int i = 0; i < 2; i++)
        memcpy(maps[i], (uint64_t[5]){0, (uint32_t)fd->value, 0, 0, 0}, sizeof maps[i]);
    uint64_t batch[4] = {(uintptr_t)unmaps, (uintptr_t)maps, (uint64_t)2 << 32 | 1, 0};
    int space = gone->device;
    MUST(ioctl(spaces.fd[space], AS_BATCH, batch) == 0);
    gone->kind = NOTHING;
    for (int i = 0; i < 2; i++)
        reference_add(MAPPING, space, fd->buffer, maps[i][4], 0);
    return "GPU batch";
}

/* What must fail, and change nothing. */
static const char *failing(void)
{
    int fd = clients.fd[any_of(&clients)];
    uint32_t both[2] = {0, 0xfffffff0};
    uint64_t va = 1;
    switch (chance(7)) {
    case 0:
        FAILS(ioctl(fd, GET_FD, both), EINVAL);
        return "get fd of nothing";
    case 1:
        FAILS(ioctl(fd, CREATE, both), EINVAL);
        return "create nothing";
    case 2:
        FAILS(alloc_call(fd, 0x7ffffffe, HEAP_IOVMM, 0), EINVAL);
        return "alloc nothing";
    case 3:
        FAILS(ioctl(fd, 0xc0084e02, both), ENOTTY);
        FAILS(ioctl(fd, release == R38 ? 0x40104e03 : 0x40204e03, pages), ENOTTY);
        return "command of another release";
    case 4:
        FAILS((long)mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0), EPERM);
        return "map the device";
    case 5:
        if (spaces.n)
            FAILS(ioctl(spaces.fd[any_of(&spaces)], AS_UNMAP, &va), EINVAL);
        return "GPU unmap nothing";
    default:
        MUST(ioctl(fd, FREE, 0) == 0);
        if (release != R32)
            MUST(ioctl(fd, FREE, 0xfffffff0) == 0);
        else
            FAILS(ioctl(fd, FREE, 999999), EBADF);
        return "free nothing";
    }
}

static void child_work(void)
{
    struct reference *fd = any(FD);
    if (fd)
        close((int)fd->value);
    nvmap_child();
}

/* Opens for itself, takes, and leaves without freeing. */
void nvmap_child(void)
{
    int fd = node("/dev/nvmap");
    MUST(fd >= 0);
    for (int i = 0; i < 4; i++) {
        uint32_t handle = create_call(fd, chance(MAX_PAGES * PAGE) + 1), both[2] = {0, handle};
        MUST(alloc_call(fd, handle, HEAP_IOVMM, 0) == 0);
        MUST(ioctl(fd, GET_FD, both) == 0);
        if (chance(2))
            MUST(ioctl(fd, FREE, (unsigned long)handle) == 0);
    }
    MUST(books_now().committed_bytes > 0);
}

/* What would survive into a program that knows nothing of it. */
void nvmap_before_exec(void)
{
    for (size_t i = 0; i < MAX_REFERENCES; i++)
        if (references[i].kind == FD || references[i].kind == FOREIGN_FD)
            fcntl((int)references[i].value, F_SETFD, FD_CLOEXEC);
}

static const char *one_step(void)
{
    static const char *(*const OPERATIONS[])(void) = {
        create,     create,  create,      create,       alloc,        get_fd,      get_fd,    from_fd,
        dup_handle, dup_fd,  map,         map,          gpu_map,      gpu_map,     gpu_batch, from_va,
        foreign,    failing, client_open, client_close, space_change, move_device,
    };
    static const char *(*const LETTING_GO[])(void) = {free_handle, close_fd, unmap, gpu_unmap};
    if (chance(1000) == 0) {
        if (chance(2)) {
            run_in_child(child_work);
            return "fork";
        }
        run_in_new_program();
        return "fork and exec";
    }
    bool crowded = n_references() > CROWDED;
    if (n_references() > FULL) /* r32: references by no name can only go like this */
        return client_close();
    if (chance(100) < (crowded ? 80 : 40))
        return LETTING_GO[chance(sizeof LETTING_GO / sizeof *LETTING_GO)]();
    /* Whole clients go seldom, or nothing would grow. */
    size_t chosen = chance(sizeof OPERATIONS / sizeof *OPERATIONS);
    if (chosen >= 20 && chance(20) != 0)
        chosen = 0;
    return OPERATIONS[chosen]();
}

const char *nvmap_step(void)
{
    const char *name = "none";
    begin();
    for (int i = 0; i < 20 && strcmp(name, "none") == 0; i++)
        name = one_step();
    return name;
}
