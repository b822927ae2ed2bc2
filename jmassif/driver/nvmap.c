// SPDX-License-Identifier: GPL-2.0-or-later
//
// nvmap, Tegra's memory manager, of L4T r32 to r38. A buffer is created without memory, gets it once by ALLOC, and
// lives while anything refers to it: handles of a client (descriptors on r32, numbers later), descriptors, mappings by
// the process and by GPUs.
//
// A command's number includes the size of its structure, so it also identifies the layout of a release.

#include "base/kernel.h"
#include "base/libc.h"
#include "base/map.h"
#include "calls/scope.h"
#include "driver/decoders.h"
#include "events/exhaustion.h"
#include "host/host.h"

#include <asm/unistd.h>
#include <errno.h>

typedef enum {
    CREATE,
    ALLOC,
    FREE,
    FD_OF,     // a new descriptor of a buffer
    HANDLE_OF, // a handle of the buffer behind a descriptor
    DUPLICATE,
    WRAP,  // a buffer of the program's own pages, which adds no memory
    IMPORT // a buffer of another process, by its name
} NvmapAction;

typedef struct {
    UInt number;
    UChar action;
    UChar handle;     // offset of the handle
    UChar fd;         // of the descriptor
    UChar size;       // of the size
    UChar size_width; // bytes of the size
    Bool is_process;  // releases with this form keep handles per process, not per open device
    UChar va;         // offset of the address of the program's own huge pages; 0: not supported
} NvmapCommand;

// Layouts of the public headers include/uapi/linux/nvmap.h of L4T r32.7, r35, r36 and r38.
static const NvmapCommand commands[] = {
    {0xc0084e00, CREATE, .handle = 4, .size = 0, .size_width = 4},
    {0xc0084e01, CREATE, .handle = 0, .size = 0, .size_width = 8},
    {0x40104e03, ALLOC, .handle = 0},
    {0x40144e03, ALLOC, .handle = 0, .is_process = True},
    {0x40204e03, ALLOC, .handle = 0, .is_process = True, .va = 24},
    {0x40144e65, ALLOC, .handle = 0}, // ALLOC_IVM: shared between virtual machines
    {0x00004e04, .action = FREE},
    {0xc0084e0f, FD_OF, .handle = 4, .fd = 0},
    {0xc0084e10, HANDLE_OF, .handle = 4, .fd = 0},
    {0xc00c4e6a, DUPLICATE, .handle = 8},
    {0xc0184e16, WRAP, .handle = 16},
    {0xc0084e13, IMPORT, .handle = 0},
    {0x80184e68, IMPORT, .handle = 16},
    {0x80204e68, IMPORT, .handle = 24},
};

// Commands that create and free nothing: they read, write, flush, label and query.
static const UInt harmless[] = {0xc0084e02, 0xc0184e05, 0x40204e06, 0x40204e07, 0x40384e06, 0x40384e07, 0xc0104e08,
                                0xc0184e0a, 0x40184e0b, 0x40184e0c, 0x40204e0c, 0xc0084e0d, 0xc0084e0e, 0x40204e11,
                                0x40204e12, 0xc0084e14, 0xc0044e15, 0x80044e15, 0xc0104e17, 0x40104e18, 0x80084e19,
                                0x80104e1a, 0x80384e1b, 0x80404e1b, 0x80484e1b, 0x40144e64, 0x40044e66, 0x80184e67,
                                0x80204e67, 0x80284e69, 0x80304e69, 0x80284e6b, 0x80304e6c};

// Handles below this are descriptors, others are numbers (nvmap_id_array.c).
#define FIRST_ID 0x7fffffff

#define HEAP_GPU ((ULong)1 << 3)
#define HUGE     ((ULong)2 << 20)

// ---- clients and their handles -------------------------------------------------------------------------------

// One entry in a client: an open device's, or on later releases the process's. A handle that is a number has its own
// entry; handles that are descriptors share one entry per buffer, which counts them.
typedef struct Handle {
    struct Handle *next; // MapNode
    UWord key;           // MapNode: the handle's number, or the buffer
    DriverFile *buffer;
    UInt n;
} Handle;

typedef struct {
    UInt n_files;
    Bool is_parents; // inherited by fork
    Map handles;
} Client;

static Client *process_client;
static Bool is_by_process;

void jm_nvmap_opened(DriverFile *file)
{
    Client *client = process_client;
    if (!client) {
        client = host_alloc_zeroed("jm.driver.nvmap", 1, sizeof *client);
        client->handles = (Map)JM_MAP("jm.driver.nvmap");
        process_client = is_by_process ? client : NULL;
    }
    client->n_files++;
    file->object = client;
}

static inline Client *client_of(const DriverFile *file)
{
    return file->object;
}

void jm_nvmap_ended(ThreadId tid, DriverFile *file)
{
    Client *client = client_of(file);
    if (--client->n_files)
        return;
    if (client == process_client)
        process_client = NULL;
    for (Handle *handle = NULL; (handle = jm_map_next(&client->handles, handle));)
        for (UInt i = 0; i < handle->n; i++)
            jm_driver_file_release(tid, handle->buffer);
    jm_map_clear(&client->handles, host_free);
    host_free(client);
}

// The release turned out to keep handles per process: its open devices share one client.
static void join_process(void)
{
    is_by_process = True;
    for (DriverFile *file = NULL; (file = jm_driver_next_file(file, FILE_NVMAP));) {
        Client *client = client_of(file);
        if (client->is_parents)
            continue;
        if (!process_client) {
            process_client = client;
            continue;
        }
        for (Handle *handle; (handle = jm_map_next(&client->handles, NULL));)
            jm_map_add(&process_client->handles, jm_map_remove(&client->handles, handle->key));
        jm_map_clear(&client->handles, NULL);
        host_free(client);
        process_client->n_files++;
        file->object = process_client;
    }
}

static DriverFile *buffer_of(DriverFile *file, UInt handle)
{
    if (handle < FIRST_ID) {
        DriverFile *buffer = jm_driver_fd(handle);
        return buffer && buffer->type == FILE_BUFFER ? buffer : NULL;
    }
    Handle *h = jm_map_find(&client_of(file)->handles, handle);
    return h ? h->buffer : NULL;
}

static void drop(ThreadId tid, Client *client, UWord key)
{
    Handle *handle = jm_map_find(&client->handles, key);
    if (!handle)
        return;
    DriverFile *buffer = handle->buffer;
    if (--handle->n == 0)
        host_free(jm_map_remove(&client->handles, key));
    jm_driver_file_release(tid, buffer);
}

static void add(ThreadId tid, DriverFile *file, UInt number, DriverFile *buffer)
{
    Client *client = client_of(file);
    UWord key = number < FIRST_ID ? (UWord)buffer : number;
    jm_driver_file_hold(buffer);
    Handle *handle = jm_map_find(&client->handles, key);
    if (handle && number >= FIRST_ID) {
        jm_driver_count(ODD_STALE);
        drop(tid, client, key);
        handle = NULL;
    }
    if (!handle) {
        handle = host_alloc_zeroed("jm.driver.nvmap", 1, sizeof *handle);
        handle->key = key;
        handle->buffer = buffer;
        jm_map_add(&client->handles, handle);
    }
    handle->n++;
    if (number < FIRST_ID) {
        host_allow_descriptor(number);
        jm_driver_fd_set(tid, number, buffer);
    }
}

// ---- queries -------------------------------------------------------------------------------------------------

// Issues an ioctl of the recorder's own on a descriptor of the program.
static Long ask(UWord fd, UInt command, void *argument)
{
    return jm_kernel_call(__NR_ioctl, fd, command, (UWord)argument, 0, 0);
}

// NVMAP_IOC_PARAMETERS: handle at 8, heap at 24, size at 48. The size of the structure depends on the release.
static Bool ask_parameters(UWord fd, UInt handle, ULong *heap, ULong *bytes)
{
    static const UInt of_releases[] = {0x80484e1b, 0x80404e1b, 0x80384e1b};
    static UInt release; // index of the form that this kernel knows, or of the next to try
    UChar answer[72];
    for (; release < 3; release++) {
        memset(answer, 0, sizeof answer);
        memcpy(answer + 8, &handle, sizeof handle);
        const Long result = ask(fd, of_releases[release], answer);
        if (result == 0) {
            memcpy(heap, answer + 24, sizeof *heap);
            memcpy(bytes, answer + 48, sizeof *bytes);
        }
        if (result != -ENOTTY) // the driver knows the form
            return result == 0;
    }
    return False;
}

// NVMAP_IOC_QUERY_HEAP_PARAMS of r36 and later: heaps at 0, the granule at 40.
static ULong ask_granule(UWord fd, UInt heap)
{
    UChar answer[48];
    UInt granule = 0;
    memset(answer, 0, sizeof answer);
    memcpy(answer, &heap, sizeof heap);
    if (ask(fd, 0x80304e69, answer) == 0)
        memcpy(&granule, answer + 40, sizeof granule);
    return granule > HOST_PAGE_BYTES && jm_is_power_of_two(granule) ? granule : HOST_PAGE_BYTES;
}

// ---- calls ---------------------------------------------------------------------------------------------------

static void alloc(ThreadId tid, const NvmapCommand *command, DriverCall *call)
{
    UInt number = jm_driver_in32(call, command->handle), asked_heap = jm_driver_in32(call, 4);
    DriverFile *buffer = buffer_of(call->file, number);
    if (!buffer) {
        jm_driver_count(ODD_UNKNOWN_HANDLE);
        return;
    }
    if (buffer->memory)
        return;
    ULong heap = asked_heap, said, bytes = buffer->bytes;
    Bool is_said = ask_parameters(call->fd, number, &heap, &said);
    if (command->is_process && (heap & HEAP_GPU)) {
        // Pages are the program's own huge pages, which are no new memory, or come in the heap's granules.
        if (command->va && jm_driver_in64(call, command->va))
            return;
        ULong granule = command->va ? HUGE : ask_granule(call->fd, HEAP_GPU);
        bytes = JM_ROUND_UP(bytes, granule);
    }
    // With granules, the driver may report either size: the headers do not document which.
    if (is_said && HOST_PAGE_UP(said) != bytes && HOST_PAGE_UP(said) != buffer->bytes)
        jm_driver_count(ODD_SIZE_DIFFERS);
    buffer->memory = jm_driver_memory_commit(tid, KIND_DRIVER, bytes);
}

// A buffer that was created elsewhere. The driver knows its size; its memory is of kind imported.
static void import(ThreadId tid, const DriverCall *call, DriverFile *buffer, UInt number)
{
    ULong heap, bytes = 0;
    if (!buffer)
        buffer = jm_driver_file_new(FILE_BUFFER);
    jm_driver_file_hold(buffer);
    add(tid, call->file, number, buffer);
    if (!buffer->memory && !buffer->bytes && ask_parameters(call->fd, number, &heap, &bytes)) {
        buffer->bytes = HOST_PAGE_UP(bytes);
        buffer->memory = jm_driver_memory_commit(tid, KIND_IMPORTED, buffer->bytes);
    }
    jm_driver_file_release(tid, buffer);
}

static void handle_of(ThreadId tid, DriverCall *call, UInt number, UWord imported_fd)
{
    DriverFile *buffer = jm_driver_fd(imported_fd);
    if (!buffer)
        buffer = jm_driver_file_behind(imported_fd);
    if (buffer) {
        if (buffer->type == FILE_BUFFER)
            add(tid, call->file, number, buffer);
        return;
    }
    buffer = jm_driver_file_new(FILE_BUFFER);
    jm_driver_fd_set(tid, imported_fd, buffer);
    import(tid, call, buffer, number);
}

static void created(ThreadId tid, const NvmapCommand *command, DriverCall *call, UInt number)
{
    ULong bytes = command->size_width == 4 ? jm_driver_in32(call, command->size) : jm_driver_in64(call, command->size);
    DriverFile *buffer = jm_driver_file_new(FILE_BUFFER);
    buffer->bytes = HOST_PAGE_UP(bytes);
    add(tid, call->file, number, buffer);
}

void jm_buffer_ended(ThreadId tid, DriverFile *buffer)
{
    if (buffer->memory)
        jm_driver_memory_end(tid, buffer->memory);
}

void jm_nvmap_before(ThreadId tid, DriverCall *call)
{
    const NvmapCommand *command = JM_ROW(commands, c, c->number == call->command);
    if (!command || command->action != FREE)
        return;
    // The argument is the handle itself.
    call->taken_id = (UInt)call->argument;
    if (call->taken_id < FIRST_ID) {
        if (jm_driver_fd(call->taken_id) && jm_driver_fd(call->taken_id)->type == FILE_BUFFER)
            call->taken = jm_driver_fd_take(call->taken_id); // the kernel closes it
        return;
    }
    Handle *handle = jm_map_remove(&client_of(call->file)->handles, call->taken_id);
    if (handle) {
        call->taken = handle->buffer;
        host_free(handle);
    }
}

static void freed(ThreadId tid, DriverCall *call, Long result)
{
    DriverFile *buffer = call->taken;
    if (!buffer)
        return;
    if (jm_is_error(result)) {
        if (call->taken_id < FIRST_ID)
            jm_driver_fd_set(tid, call->taken_id, buffer);
        else
            add(tid, call->file, call->taken_id, buffer);
    } else if (call->taken_id < FIRST_ID) {
        drop(tid, client_of(call->file), (UWord)buffer);
    }
    jm_driver_file_release(tid, buffer);
}

// Records a failed ALLOC outside of CUDA calls (a camera's library, a codec's). Inside, the failing CUDA call is
// recorded instead, as it says more.
static void failed(ThreadId tid, const NvmapCommand *command, const DriverCall *call, Long result)
{
    if (command->action != ALLOC || result != -ENOMEM || jm_scope_depth(tid))
        return;
    const DriverFile *buffer = buffer_of(call->file, jm_driver_in32(call, command->handle));
    if (buffer)
        jm_exhaustion_failed(tid, "NVMAP_IOC_ALLOC", ENOMEM, KIND_DRIVER, buffer->bytes);
}

static void succeeded(ThreadId tid, const NvmapCommand *command, DriverCall *call)
{
    if (command->is_process && !is_by_process)
        join_process();
    UInt number = jm_driver_out32(call, command->handle);
    DriverFile *buffer;
    switch ((NvmapAction)command->action) {
    case CREATE:
        created(tid, command, call, number);
        break;
    case ALLOC:
        alloc(tid, command, call);
        break;
    case FD_OF:
        buffer = buffer_of(call->file, jm_driver_in32(call, command->handle));
        if (buffer) {
            host_allow_descriptor(jm_driver_out32(call, command->fd));
            jm_driver_fd_set(tid, jm_driver_out32(call, command->fd), buffer);
        } else {
            jm_driver_count(ODD_UNKNOWN_HANDLE);
        }
        break;
    case HANDLE_OF:
        handle_of(tid, call, number, jm_driver_in32(call, command->fd));
        break;
    case DUPLICATE:
        buffer = buffer_of(call->file, jm_driver_in32(call, 0));
        if (buffer)
            add(tid, call->file, number, buffer);
        else
            jm_driver_count(ODD_UNKNOWN_HANDLE);
        break;
    case WRAP:
        add(tid, call->file, number, jm_driver_file_new(FILE_BUFFER));
        break;
    case IMPORT:
        import(tid, call, NULL, number);
        break;
    case FREE:
        break;
    }
}

void jm_nvmap_after(ThreadId tid, DriverCall *call, Long result)
{
    const NvmapCommand *command = JM_ROW(commands, c, c->number == call->command);
    if (command && command->action == FREE) {
        freed(tid, call, result);
        return;
    }
    if (jm_is_error(result)) {
        if (command)
            failed(tid, command, call, result);
        return;
    }
    if (command)
        succeeded(tid, command, call);
    else if (!JM_ROW(harmless, h, *h == call->command))
        jm_driver_unknown(call, call->command);
}

void jm_nvmap_after_fork_in_child(void)
{
    // An inherited device remains the parent's client.
    for (DriverFile *file = NULL; (file = jm_driver_next_file(file, FILE_NVMAP));)
        client_of(file)->is_parents = True;
    process_client = NULL;
}
