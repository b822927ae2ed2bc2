/* SPDX-License-Identifier: GPL-2.0-or-later */
/* /dev/nvmap: buffers, and who holds them. A buffer lives while a client has a reference, a GPU address space maps it,
 * or its dmabuf is open or mapped anywhere. Up to r32 a reference is a descriptor of the dmabuf, later a number of the
 * client's.
 *
 * Layouts are those of the documented headers of each release. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "board.h"

#define FIRST_ID      0x7fffffffu
#define HUGE_BYTES    ((uint64_t)2 << 20)
#define GRANULE_BYTES ((uint64_t)64 << 10) /* of r36's carveout for the GPU */
#define HEAP_IOVMM    (1u << 30)
#define HEAP_GPU      (1u << 3)
#define HEAP_GENERIC  (1u << 0)
#define FIRST_FD      1024

struct buffer {
    struct buffer *next, *before;
    struct file *file;
    uint64_t bytes;     /* rounded */
    uint64_t committed; /* 0: wrapped, or not allocated */
    uint32_t heap, flags, align;
    uint64_t wrapped;   /* of the program's own pages */
    uint64_t allocated; /* as the heap rounds; the dmabuf stays as it was made. 0: not yet */
    unsigned n_references, n_mappings;
    uint64_t serial;
    pid_t process; /* that allocated it */
};

/* r32: of each of a client's buffers once, with a count; later each number is a reference of its own. */
struct reference {
    struct buffer *buffer; /* NULL: free */
    unsigned n;
};

struct client {
    struct client *next;
    pid_t process;
    unsigned n_files;
    struct reference *references;
    size_t n, room, next_id;
};

static struct buffer *buffers;
static struct client *clients;
static uint64_t last_serial;

static uint64_t round_to(uint64_t bytes, uint64_t to)
{
    return (bytes + to - 1) / to * to;
}

/* Commands name a node of memory, and the GPU's carveout is huge pages of the caller's own. */
static bool by_node(void)
{
    return release == R38 || release == R39;
}

static bool by_descriptor(void)
{
    return release == R32;
}

/* Buffers. */

static struct buffer *buffer_new(uint64_t bytes)
{
    struct buffer *buffer = bytes && bytes <= (uint64_t)1 << 46 ? calloc(1, sizeof *buffer) : NULL;
    if (!buffer)
        return NULL;
    buffer->bytes = round_to(bytes, PAGE_BYTES);
    buffer->file = file_new(DMABUF, buffer->bytes);
    if (!buffer->file) {
        free(buffer);
        return NULL;
    }
    buffer->file->object = buffer;
    buffer->serial = ++last_serial;
    buffer->next = buffers;
    if (buffers)
        buffers->before = buffer;
    buffers = buffer;
    books.n_buffers++;
    return buffer;
}

static void buffer_delete(struct buffer *buffer)
{
    if (buffer->before)
        buffer->before->next = buffer->next;
    else
        buffers = buffer->next;
    if (buffer->next)
        buffer->next->before = buffer->before;
    books_give(&books.nvmap_bytes, buffer->committed);
    books.wrapped_bytes -= buffer->wrapped;
    books.n_buffers--;
    file_delete(buffer->file);
    free(buffer);
}

static void buffer_delete_if_unused(struct buffer *buffer)
{
    if (buffer->n_references == 0 && buffer->n_mappings == 0 && !file_held(buffer->file))
        buffer_delete(buffer);
}

void nvmap_sweep(void)
{
    struct buffer *next;
    for (struct buffer *buffer = buffers; buffer; buffer = next) {
        next = buffer->next;
        buffer_delete_if_unused(buffer);
    }
}

struct buffer *buffer_of(const struct file *file)
{
    if (!file || file->device != DMABUF)
        return NULL;
    struct buffer *buffer = file->object;
    return buffer->allocated ? buffer : NULL;
}

uint64_t buffer_bytes(const struct buffer *buffer)
{
    return buffer->bytes;
}

void buffer_pin(struct buffer *buffer)
{
    buffer->n_mappings++;
    books.n_mappings++;
}

void buffer_unpin(struct buffer *buffer)
{
    buffer->n_mappings--;
    books.n_mappings--;
    buffer_delete_if_unused(buffer);
}

uint64_t nvmap_bytes_of(pid_t process)
{
    uint64_t bytes = 0;
    for (const struct buffer *buffer = buffers; buffer; buffer = buffer->next)
        bytes += buffer->process == process ? buffer->committed : 0;
    return bytes;
}

/* Clients: of an open, and from r36 on of a process. */

void nvmap_open(struct file *file, pid_t process)
{
    struct client *client = clients;
    while (client && client->process != process)
        client = client->next;
    if (!client || release < R36) {
        client = calloc(1, sizeof *client);
        if (!client)
            abort();
        client->process = process;
        client->next = clients;
        clients = client;
    }
    client->n_files++;
    file->object = client;
}

static void reference_drop(struct reference *reference)
{
    struct buffer *buffer = reference->buffer;
    if (--reference->n == 0)
        reference->buffer = NULL;
    buffer->n_references--;
    books.n_handles--;
    buffer_delete_if_unused(buffer);
}

void nvmap_close(struct file *file)
{
    struct client *client = file->object;
    if (--client->n_files > 0)
        return;
    for (size_t i = 0; i < client->n; i++)
        while (client->references[i].buffer)
            reference_drop(&client->references[i]);
    struct client **link = &clients;
    while (*link != client)
        link = &(*link)->next;
    *link = client->next;
    free(client->references);
    free(client);
}

static bool room_for(struct client *client, size_t n)
{
    if (n > client->room) {
        size_t room = client->room ? client->room * 2 : 64;
        struct reference *references = realloc(client->references, room * sizeof *references);
        if (!references)
            return false;
        memset(references + client->room, 0, (room - client->room) * sizeof *references);
        client->references = references;
        client->room = room;
    }
    if (client->n < n)
        client->n = n;
    return true;
}

static struct reference *reference_to(struct client *client, const struct buffer *buffer)
{
    for (size_t i = 0; i < client->n; i++)
        if (client->references[i].buffer == buffer)
            return &client->references[i];
    return NULL;
}

static size_t place_for(struct client *client, const struct buffer *buffer)
{
    struct reference *same = by_descriptor() ? reference_to(client, buffer) : NULL;
    if (same)
        return (size_t)(same - client->references);
    if (release >= R36)
        return client->next_id++; /* each number once */
    size_t i = 0;
    while (i < client->n && client->references[i].buffer)
        i++;
    return i;
}

/* One more reference to a buffer; its handle goes into the call's structure. 0, or a negative error. */
static long handle_give(struct call *call, struct buffer *buffer, size_t handle_at)
{
    struct client *client = call->file->object;
    size_t place = place_for(client, buffer);
    if (!room_for(client, place + 1))
        return -ENOMEM;
    int64_t handle = (int64_t)FIRST_ID + (int64_t)place;
    if (by_descriptor())
        handle = client_hand_out(call, buffer->file, FIRST_FD, true);
    if (handle < 0)
        return handle;
    client->references[place].buffer = buffer;
    client->references[place].n++;
    buffer->n_references++;
    books.n_handles++;
    put32(call, handle_at, (uint32_t)handle);
    return 0;
}

static struct reference *reference_of(const struct call *call, uint32_t handle)
{
    struct client *client = call->file->object;
    if (by_descriptor()) {
        struct file *file = file_of(call->tid, (int)handle);
        return file && file->device == DMABUF ? reference_to(client, file->object) : NULL;
    }
    if (handle < FIRST_ID || handle - FIRST_ID >= client->n || !client->references[handle - FIRST_ID].buffer)
        return NULL;
    return &client->references[handle - FIRST_ID];
}

static struct buffer *handled(const struct call *call, uint32_t handle)
{
    struct reference *reference = reference_of(call, handle);
    return reference ? reference->buffer : NULL;
}

/* Commands. */

static long create(struct call *call, uint64_t bytes, size_t handle_at)
{
    struct buffer *buffer = buffer_new(bytes);
    if (!buffer)
        return bytes ? -ENOMEM : -EINVAL;
    long result = handle_give(call, buffer, handle_at);
    if (result < 0)
        buffer_delete(buffer);
    return result;
}

static long act_create(struct call *call)
{
    return create(call, get32(call, 0), 4);
}

static long act_create_64(struct call *call)
{
    return create(call, get64(call, 0), 0);
}

static long allocate(struct call *call, uint32_t heaps, uint64_t va)
{
    struct buffer *buffer = handled(call, get32(call, 0));
    if (!buffer || heaps == 0)
        return -EINVAL;
    if (buffer->allocated)
        return -EEXIST;
    bool huge = heaps == HEAP_GPU && by_node();
    uint64_t bytes = buffer->bytes;
    if (heaps == HEAP_GPU) {
        if (release < R36 || (huge && va == 0))
            return -ENOMEM;
        bytes = round_to(bytes, huge ? HUGE_BYTES : GRANULE_BYTES);
    }
    /* Huge pages are the caller's own. */
    uint64_t committed = huge ? 0 : bytes;
    if (committed > machine_granted() || !books_take(&books.nvmap_bytes, committed))
        return -ENOMEM;
    buffer->committed = committed;
    buffer->allocated = bytes;
    buffer->wrapped = bytes - committed;
    books.wrapped_bytes += buffer->wrapped;
    buffer->heap = heaps == HEAP_GPU ? HEAP_GPU : HEAP_IOVMM;
    buffer->flags = get32(call, 8);
    buffer->align = get32(call, 12);
    buffer->process = client_process(call->tid);
    return 0;
}

static long act_alloc(struct call *call)
{
    return allocate(call, get32(call, 4), by_node() ? get64(call, 24) : 0);
}

static long act_alloc_ivm(struct call *call)
{
    return allocate(call, get32(call, 4), 0);
}

/* The argument is the handle itself. */
static long act_free(struct call *call)
{
    uint32_t handle = (uint32_t)call->argument;
    struct reference *reference = reference_of(call, handle);
    struct file *file = file_of(call->tid, (int)handle);
    if (!by_descriptor()) {
        if (reference)
            reference_drop(reference);
        else if (file && file->device == FOREIGN) /* the handle of another driver's buffer is a descriptor */
            return client_close(call, (int)handle);
        return 0;
    }
    if (handle == 0)
        return 0;
    /* The descriptor goes even if the client has no reference left. */
    struct buffer *buffer = reference ? reference->buffer : NULL;
    long result = client_close(call, (int)handle);
    if (buffer)
        reference_drop(reference);
    return result;
}

static long act_get_fd(struct call *call)
{
    struct buffer *buffer = handled(call, get32(call, 4));
    if (!buffer)
        return -EINVAL;
    int fd = client_hand_out(call, buffer->file, by_descriptor() ? FIRST_FD : 0, true);
    if (fd < 0)
        return fd;
    put32(call, 0, (uint32_t)fd);
    return 0;
}

static long act_from_fd(struct call *call)
{
    struct file *file = file_of(call->tid, (int)get32(call, 0));
    if (file && file->device == FOREIGN) { /* goes back as another descriptor of the same */
        int fd = client_hand_out(call, file, by_descriptor() ? FIRST_FD : 0, true);
        if (fd >= 0)
            put32(call, 4, (uint32_t)fd);
        return fd < 0 ? fd : 0;
    }
    struct buffer *buffer = buffer_of(file);
    if (!buffer)
        return -EINVAL;
    return handle_give(call, buffer, 4);
}

static long act_dup_handle(struct call *call)
{
    struct buffer *buffer = handled(call, get32(call, 0));
    if (!buffer || !buffer->allocated)
        return -EINVAL;
    return handle_give(call, buffer, 8);
}

static long act_from_va(struct call *call)
{
    uint64_t va = get64(call, 0), bytes = get32(call, 8);
    uint8_t first;
    if (bytes == 0)
        bytes = get64(call, 16);
    if (bytes == 0 || va % PAGE_BYTES != 0 || !client_read(call->tid, va, &first, 1) ||
        !client_read(call->tid, va + bytes - 1, &first, 1))
        return -EINVAL;
    long result = create(call, bytes, 16);
    if (result < 0)
        return result;
    struct buffer *buffer = handled(call, get32(call, 16));
    buffer->allocated = buffer->wrapped = buffer->bytes;
    buffer->heap = HEAP_IOVMM;
    books.wrapped_bytes += buffer->wrapped;
    return 0;
}

static long act_parameters(struct call *call)
{
    struct buffer *buffer = handled(call, get32(call, 8));
    if (!buffer)
        return -EINVAL;
    put32(call, 0, 0);
    put32(call, 4, 0);
    put32(call, 12, 0);
    put32(call, 16, 3); /* to read and to write */
    put64(call, 24, buffer->heap);
    put64(call, 32, buffer->align);
    put64(call, 40, buffer->flags & 3);
    put64(call, 48, buffer->allocated ? buffer->allocated : buffer->bytes);
    if (call->size >= 64)
        put64(call, 56, 0);
    if (call->size >= 72)
        put64(call, 64, buffer->serial);
    return 0;
}

static long act_heaps(struct call *call)
{
    put64(call, 0, HEAP_IOVMM | (release >= R36 ? HEAP_GPU : 0));
    return 0;
}

static uint64_t free_bytes(void)
{
    books_sweep();
    return memory_bytes - books.committed_bytes;
}

static long act_heap_size(struct call *call)
{
    put64(call, 8, memory_bytes);
    return 0;
}

static long act_query_heap(struct call *call)
{
    uint32_t heap = get32(call, 0);
    put32(call, 8, 0);
    put64(call, 16, memory_bytes);
    put64(call, 24, free_bytes());
    put64(call, 32, free_bytes());
    if (call->size >= 48)
        put32(call, 40, heap == HEAP_GPU ? (uint32_t)(by_node() ? HUGE_BYTES : GRANULE_BYTES) : 0);
    return 0;
}

/* Copies and cache maintenance: no memory comes or goes. */
static long act_nothing(struct call *call)
{
    (void)call;
    return 0;
}

#define SAME(number)                                                                                                   \
    {                                                                                                                  \
        number, number, number, number                                                                                 \
    }

const struct command nvmap_commands[] = {
    {SAME(0xc0084e00), "create", act_create},
    {SAME(0xc0084e01), "create_64", act_create_64},
    {{0x40104e03, 0x40104e03, 0x40144e03, 0x40204e03}, "alloc", act_alloc},
    {SAME(0x00004e04), "free", act_free},
    {{0x40204e06}, "write", act_nothing},
    {{0x40204e07}, "read", act_nothing},
    {SAME(0x40384e06), "write_64", act_nothing},
    {SAME(0x40384e07), "read_64", act_nothing},
    {SAME(0x40184e0c), "cache", act_nothing},
    {SAME(0x40204e0c), "cache_64", act_nothing},
    {SAME(0xc0084e0f), "get_fd", act_get_fd},
    {SAME(0xc0084e10), "from_fd", act_from_fd},
    {{0x40204e11, 0x40204e11, 0x40204e11}, "cache_list", act_nothing},
    {{0x40204e12}, "reserve", act_nothing},
    {SAME(0xc0184e16), "from_va", act_from_va},
    {{0x40104e18, 0x40104e18, 0x40104e18}, "set_tag_label", act_nothing},
    {SAME(0x80084e19), "get_available_heaps", act_heaps},
    {{0x80104e1a, 0x80104e1a, 0x80104e1a}, "get_heap_size", act_heap_size},
    {{0x80384e1b, 0x80404e1b, 0x80484e1b, 0x80484e1b}, "parameters", act_parameters},
    {SAME(0x40144e65), "alloc_ivm", act_alloc_ivm},
    {{0x80284e69, 0x80284e69, 0x80304e69, 0x80304e69}, "query_heap_params", act_query_heap},
    {{0, 0xc00c4e6a, 0xc00c4e6a, 0xc00c4e6a}, "dup_handle", act_dup_handle},
    {{0, 0, 0, 0x80304e6c}, "query_heap_params_numa", act_query_heap},
    {{0}, NULL, NULL},
};
