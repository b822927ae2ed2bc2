/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The resource manager, behind /dev/nvidiactl and /dev/nvidia0: clients, each a tree of objects, of which some are
 * memory. To free an object frees what is below it; a client goes with the descriptor that made it. Memory that was
 * duplicated stays until its last object goes. A command that fails says so in its structure; the system call succeeds.
 *
 * Layouts are those of the documented headers of 535 and 580. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "board.h"

enum status {
    OK = 0,
    DUPLICATE = 0x19,
    BAD_ARGUMENT = 0x1f,
    BAD_CLASS = 0x22,
    BAD_CLIENT = 0x23,
    BAD_FUNCTION = 0x29,
    BAD_HANDLE = 0x33,
    BAD_PARENT = 0x36,
    NO_MEMORY = 0x51,
    NOT_FOUND = 0x57,
};

enum class {
    ROOT = 0x0,
    ROOT_NON_PRIVILEGED = 0x1,
    ROOT_CLIENT = 0x41,
    SYSTEM = 0x3e,
    LOCAL_PRIVILEGED = 0x3f,
    LOCAL_USER = 0x40,
    EXTENDED_USER = 0x42,
    VIRTUAL = 0x70,
    OS_DESCRIPTOR = 0x71,
    LIST_SYSTEM = 0x81,
    LIST_VIDEO = 0x82,
    LIST_OBJECT = 0x83,
    NV50_VIRTUAL = 0x50a0,
};

enum { N_CHAINS = 1024, MAX_ARGUMENT = 16384 };
#define BIG_PAGE  ((uint64_t)64 << 10)
#define HUGE_PAGE ((uint64_t)2 << 20)

struct memory {
    struct memory *next;
    uint64_t bytes;
    uint64_t *kind; /* where in the books; NULL: nowhere */
    unsigned n_objects;
    pid_t process;
};

struct object {
    struct object *next; /* of the same hash */
    uint32_t client, handle, parent;
    struct memory *memory; /* NULL: something else */
    struct file *file;     /* a client's */
};

static struct object *chains[N_CHAINS];
static struct memory *memories;
static uint32_t last_handle = 0xcaf00000;

/* Objects. */

static struct object **chain_of(uint32_t client, uint32_t handle)
{
    return &chains[(client * 31 + handle) % N_CHAINS];
}

static struct object *object_find(uint32_t client, uint32_t handle)
{
    struct object *object = *chain_of(client, handle);
    while (object && (object->client != client || object->handle != handle))
        object = object->next;
    return object;
}

static void memory_drop(struct memory *memory)
{
    if (--memory->n_objects > 0)
        return;
    struct memory **link = &memories;
    while (*link != memory)
        link = &(*link)->next;
    *link = memory->next;
    if (memory->kind)
        books_give(memory->kind, memory->bytes);
    else
        books.wrapped_bytes -= memory->bytes;
    free(memory);
}

static void object_delete(struct object *object)
{
    struct object **link = chain_of(object->client, object->handle);
    while (*link != object)
        link = &(*link)->next;
    *link = object->next;
    if (object->memory)
        memory_drop(object->memory);
    books.n_objects--;
    free(object);
}

static struct object *child_of(uint32_t client, uint32_t parent)
{
    for (size_t i = 0; i < N_CHAINS; i++)
        for (struct object *object = chains[i]; object; object = object->next)
            if (object->client == client && object->parent == parent && object->handle != parent)
                return object;
    return NULL;
}

static void tree_delete(struct object *object)
{
    struct object *child;
    bool may_have_any = !object->memory;
    while (may_have_any && (child = child_of(object->client, object->handle)))
        tree_delete(child);
    object_delete(object);
}

void rm_close(struct file *file)
{
    for (size_t i = 0; i < N_CHAINS; i++)
        for (struct object *object = chains[i]; object; object = object->next)
            if (object->file == file) {
                tree_delete(object);
                rm_close(file);
                return;
            }
}

bool rm_memory_exists(uint32_t client, uint32_t memory)
{
    struct object *object = object_find(client, memory);
    return object && object->memory;
}

uint64_t rm_bytes_of(pid_t process)
{
    uint64_t bytes = 0;
    for (const struct memory *memory = memories; memory; memory = memory->next)
        bytes += memory->kind && memory->process == process ? memory->bytes : 0;
    return bytes;
}

/* A new object; *handle is the caller's choice, or 0. */
static enum status object_new(uint32_t client, uint32_t parent, uint32_t *handle, struct memory *memory,
                              struct object **made)
{
    while (*handle == 0 || (*handle == last_handle && object_find(client, *handle)))
        *handle = ++last_handle;
    if (object_find(client, *handle))
        return DUPLICATE;
    struct object *object = calloc(1, sizeof *object);
    if (!object)
        return NO_MEMORY;
    struct object **chain = chain_of(client, *handle);
    *object = (struct object){*chain, client, *handle, parent, memory, NULL};
    *chain = object;
    if (memory)
        memory->n_objects++;
    books.n_objects++;
    *made = object;
    return OK;
}

static enum status client_new(const struct call *call, uint32_t *handle)
{
    struct object *object;
    uint32_t client = *handle;
    while (client == 0 || (*handle == 0 && object_find(client, client)))
        client = 0xc1d00000 + (++last_handle & 0xfffff);
    enum status status = object_new(client, client, &client, NULL, &object);
    if (status == OK) {
        object->file = call->file;
        *handle = client;
    }
    return status;
}

static enum status parent_check(uint32_t client, uint32_t parent)
{
    if (!object_find(client, client))
        return BAD_CLIENT;
    return object_find(client, parent) ? OK : BAD_PARENT;
}

/* Memory. */

static uint64_t *kind_of(uint32_t class)
{
    switch (class) {
    case LOCAL_USER:
    case LOCAL_PRIVILEGED:
        return &books.vidmem_bytes;
    case SYSTEM:
    case EXTENDED_USER:
        return &books.sysmem_bytes;
    default:
        return NULL;
    }
}

/* By the page size that the attributes ask for, if they do. */
static uint64_t round_for(uint64_t bytes, uint32_t attributes)
{
    static const uint64_t PAGES[] = {0, PAGE_BYTES, BIG_PAGE, HUGE_PAGE};
    uint64_t page = PAGES[attributes >> 23 & 3];
    if (page == 0)
        page = bytes >= HUGE_PAGE ? HUGE_PAGE : PAGE_BYTES;
    return (bytes + page - 1) / page * page;
}

static enum status memory_new(const struct call *call, uint32_t client, uint32_t parent, uint32_t *handle,
                              uint64_t *kind, uint64_t bytes)
{
    struct object *object;
    enum status status = parent_check(client, parent);
    if (status != OK)
        return status;
    if (bytes == 0 || bytes > (uint64_t)1 << 46)
        return BAD_ARGUMENT;
    if (*handle && object_find(client, *handle))
        return DUPLICATE;
    struct memory *memory = calloc(1, sizeof *memory);
    if (!memory || (kind && !books_take(kind, bytes))) {
        free(memory);
        return NO_MEMORY;
    }
    *memory = (struct memory){memories, bytes, kind, 0, client_process(call->tid)};
    memories = memory;
    books.wrapped_bytes += kind ? 0 : bytes;
    return object_new(client, parent, handle, memory, &object);
}

static bool mapped_by(const struct call *call, int32_t fd, uint64_t bytes)
{
    struct file *file = file_of(call->tid, fd);
    if (!file || (file->device != RM_CTL && file->device != RM_GPU))
        return false;
    file->mapped_bytes = (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    return ftruncate(file->master, (off_t)file->mapped_bytes) == 0;
}

/* Commands: each returns its status, which goes where its row says. */

static enum status alloc_memory_class(struct call *call, uint32_t class, uint32_t *handle, uint64_t parameters_at)
{
    uint8_t bytes[128];
    size_t size = release == RM535 ? 120 : 128;
    struct call parameters = {.data = bytes};
    if (!client_read(call->tid, parameters_at, bytes, size))
        return BAD_ARGUMENT;
    uint64_t actual = round_for(get64(&parameters, 64), get32(&parameters, 24));
    enum status status = memory_new(call, get32(call, 0), get32(call, 4), handle, kind_of(class), actual);
    if (status != OK)
        return status;
    put64(&parameters, 64, actual);
    put64(&parameters, 88, actual - 1);
    client_write(call->tid, parameters_at, bytes, size);
    return OK;
}

static enum status alloc_descriptor_class(struct call *call, uint32_t *handle, uint64_t parameters_at)
{
    uint8_t bytes[40], touched;
    struct call parameters = {.data = bytes};
    if (!client_read(call->tid, parameters_at, bytes, sizeof bytes) ||
        !client_read(call->tid, get64(&parameters, 16), &touched, 1))
        return BAD_ARGUMENT;
    return memory_new(call, get32(call, 0), get32(call, 4), handle, NULL, get64(&parameters, 24) + 1);
}

static enum status act_alloc(struct call *call)
{
    uint32_t class = get32(call, 12), handle = get32(call, 8);
    uint64_t parameters_at = get64(call, 16);
    struct object *object;
    enum status status;
    switch (class) {
    case ROOT:
    case ROOT_NON_PRIVILEGED:
    case ROOT_CLIENT:
        status = client_new(call, &handle);
        break;
    case SYSTEM:
    case LOCAL_PRIVILEGED:
    case LOCAL_USER:
    case EXTENDED_USER:
        status = alloc_memory_class(call, class, &handle, parameters_at);
        break;
    case OS_DESCRIPTOR:
        status = alloc_descriptor_class(call, &handle, parameters_at);
        break;
    case LIST_SYSTEM:
    case LIST_VIDEO:
    case LIST_OBJECT: /* how they list their pages is not simulated */
        return BAD_CLASS;
    default:
        status = parent_check(get32(call, 0), get32(call, 4));
        if (status == OK)
            status = object_new(get32(call, 0), get32(call, 4), &handle, NULL, &object);
    }
    if (status == OK)
        put32(call, 8, handle);
    return status;
}

static enum status act_free(struct call *call)
{
    struct object *object = object_find(get32(call, 0), get32(call, 8));
    if (!object)
        return object_find(get32(call, 0), get32(call, 0)) ? NOT_FOUND : BAD_CLIENT;
    tree_delete(object);
    return OK;
}

static enum status act_control(struct call *call)
{
    return object_find(get32(call, 0), get32(call, 4)) ? OK : BAD_HANDLE;
}

/* The structure: what is common, and from 40 on what the function takes. */
static enum status vid_heap_alloc(struct call *call)
{
    enum { FLAG_VIRTUAL = 0x00080000, FLAG_HANDLE_PROVIDED = 0x00008000, ATTR2_EXTENDED = 1 << 24 };
    uint32_t flags = get32(call, 52), attributes = get32(call, 56);
    uint32_t handle = flags & FLAG_HANDLE_PROVIDED ? get32(call, 44) : 0;
    uint64_t bytes = round_for(get64(call, 88), attributes);
    uint32_t class = flags & FLAG_VIRTUAL                ? NV50_VIRTUAL
                     : get32(call, 144) & ATTR2_EXTENDED ? EXTENDED_USER
                     : (attributes >> 25 & 3) == 0       ? LOCAL_USER
                                                         : SYSTEM;
    enum status status;
    struct object *object;
    if (class == NV50_VIRTUAL) {
        status = parent_check(get32(call, 0), get32(call, 4));
        if (status == OK)
            status = object_new(get32(call, 0), get32(call, 4), &handle, NULL, &object);
    } else {
        status = memory_new(call, get32(call, 0), get32(call, 4), &handle, kind_of(class), bytes);
    }
    if (status != OK)
        return status;
    put32(call, 44, handle);
    put64(call, 88, bytes);
    put64(call, 112, bytes - 1);
    return OK;
}

static enum status vid_heap_free(struct call *call)
{
    struct object *object = object_find(get32(call, 0), get32(call, 44));
    if (!object)
        return NOT_FOUND;
    tree_delete(object);
    return OK;
}

static enum status vid_heap_descriptor(struct call *call)
{
    uint32_t handle = get32(call, 40);
    uint8_t touched;
    if (!client_read(call->tid, get64(call, 64), &touched, 1))
        return BAD_ARGUMENT;
    enum status status = memory_new(call, get32(call, 0), get32(call, 4), &handle, NULL, get64(call, 72) + 1);
    if (status == OK)
        put32(call, 40, handle);
    return status;
}

static enum status act_vid_heap(struct call *call)
{
    put64(call, 24, 0);
    put64(call, 32, 0);
    switch (get32(call, 8)) {
    case 2:
        return vid_heap_alloc(call);
    case 3:
        return vid_heap_free(call);
    case 27:
        return vid_heap_descriptor(call);
    default:
        return BAD_FUNCTION;
    }
}

static enum status act_alloc_memory(struct call *call)
{
    uint32_t handle = get32(call, 8), class = get32(call, 12);
    uint64_t bytes = get64(call, 32) + 1;
    int32_t fd = (int32_t)get32(call, 48);
    uint8_t touched;
    if (class != SYSTEM && class != OS_DESCRIPTOR)
        return BAD_CLASS;
    if (class == SYSTEM)
        bytes = round_for(bytes, 1u << 23);
    else if (!client_read(call->tid, get64(call, 24), &touched, 1))
        return BAD_ARGUMENT;
    enum status status = memory_new(call, get32(call, 0), get32(call, 4), &handle, kind_of(class), bytes);
    if (status != OK)
        return status;
    if (class == SYSTEM && fd >= 0)
        mapped_by(call, fd, bytes);
    put32(call, 8, handle);
    return OK;
}

static enum status act_map_memory(struct call *call)
{
    struct object *object = object_find(get32(call, 0), get32(call, 8));
    if (!object || !object->memory)
        return NOT_FOUND;
    uint64_t offset = get64(call, 16), bytes = get64(call, 24);
    if (bytes == 0 || offset > object->memory->bytes || bytes > object->memory->bytes - offset ||
        !mapped_by(call, (int32_t)get32(call, 48), bytes))
        return BAD_ARGUMENT;
    put64(call, 32, offset);
    return OK;
}

static enum status act_unmap_memory(struct call *call)
{
    return object_find(get32(call, 0), get32(call, 8)) ? OK : NOT_FOUND;
}

static enum status act_dup(struct call *call)
{
    uint32_t client = get32(call, 0), parent = get32(call, 4), handle = get32(call, 8);
    struct object *source = object_find(get32(call, 12), get32(call, 16)), *object;
    enum status status = parent_check(client, parent);
    if (status != OK)
        return status;
    if (!source || source->handle == source->client)
        return NOT_FOUND;
    status = object_new(client, parent, &handle, source->memory, &object);
    if (status == OK)
        put32(call, 8, handle);
    return status;
}

static enum status act_version(struct call *call)
{
    put32(call, 4, 1); /* known */
    memset(call->data + 8, 0, 64);
    strcpy((char *)call->data + 8, release == RM535 ? "535.183.01" : release == RM580 ? "580.95.05" : "580.00");
    return OK;
}

static enum status act_nothing(struct call *call)
{
    (void)call;
    return OK;
}

enum { ANY_SIZE = 0, NO_STATUS = -1, ON_GPU = 1 };

static const struct escape {
    uint32_t nr, size_535, size_580;
    int status_at;
    int where;
    const char *name;
    enum status (*act)(struct call *call);
} ESCAPES[] = {
    {0x27, 56, 56, 40, ON_GPU, "rm_alloc_memory", act_alloc_memory},
    {0x29, 16, 16, 12, 0, "rm_free", act_free},
    {0x2a, 32, 32, 28, 0, "rm_control", act_control},
    {0x2b, 32, 32, 28, 0, "rm_alloc", act_alloc},
    {0x2b, 48, 48, 40, 0, "rm_alloc", act_alloc},
    {0x34, 28, 28, 24, 0, "rm_dup_object", act_dup},
    {0x4a, 184, 184, 20, 0, "rm_vid_heap_control", act_vid_heap},
    {0x4e, 56, 56, 40, 0, "rm_map_memory", act_map_memory},
    {0x4f, 32, 32, 24, 0, "rm_unmap_memory", act_unmap_memory},
    {0x57, 56, 64, NO_STATUS, 0, "rm_map_memory_dma", act_nothing},
    {0x58, 40, 48, NO_STATUS, 0, "rm_unmap_memory_dma", act_nothing},
    {200, ANY_SIZE, ANY_SIZE, NO_STATUS, 0, "card_info", act_nothing},
    {201, 4, 4, NO_STATUS, 0, "register_fd", act_nothing},
    {206, ANY_SIZE, ANY_SIZE, NO_STATUS, 0, "alloc_os_event", act_nothing},
    {210, 72, 72, NO_STATUS, 0, "check_version_str", act_version},
    {212, ANY_SIZE, ANY_SIZE, NO_STATUS, 0, "attach_gpus", act_nothing},
    {214, ANY_SIZE, ANY_SIZE, NO_STATUS, 0, "sys_params", act_nothing},
};

static const struct escape *escape_of(uint32_t nr, uint32_t size)
{
    for (size_t i = 0; i < sizeof ESCAPES / sizeof *ESCAPES; i++) {
        uint32_t its_size = release == RM535 ? ESCAPES[i].size_535 : ESCAPES[i].size_580;
        if (ESCAPES[i].nr == nr && (its_size == size || its_size == ANY_SIZE))
            return &ESCAPES[i];
    }
    return NULL;
}

/* Number and size are all that the driver looks at. What does not fit a command's size comes wrapped. */
long rm_ioctl(struct call *call)
{
    enum { TRANSFER = 211, TRANSFER_SIZE = 16 };
    uint32_t nr = _IOC_NR(call->command), size = _IOC_SIZE(call->command);
    uint64_t argument = call->argument;
    if (nr == TRANSFER) {
        if (size != TRANSFER_SIZE)
            return -EINVAL;
        if (!client_read(call->tid, argument, call->data, TRANSFER_SIZE))
            return -EFAULT;
        nr = get32(call, 0);
        size = get32(call, 4);
        argument = get64(call, 8);
        if (size > MAX_ARGUMENT)
            return -EINVAL;
    }
    const struct escape *escape = escape_of(nr, size);
    if (!escape || (escape->where == ON_GPU && call->file->device != RM_GPU))
        return -EINVAL;
    if (size && !client_read(call->tid, argument, call->data, size))
        return -EFAULT;
    call->size = size;
    enum status status = escape->act(call);
    if (escape->status_at != NO_STATUS)
        put32(call, (size_t)escape->status_at, status);
    if (size && !client_write(call->tid, argument, call->data, size))
        return -EFAULT;
    logged(call, escape->name, status);
    return 0;
}
