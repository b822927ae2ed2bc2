// SPDX-License-Identifier: GPL-2.0-or-later
//
// NVIDIA's resource manager (RM) and unified memory (UVM), of driver branches 515 to 595. RM keeps a tree of objects
// below each client, memory among them; freeing an object frees all below it. An object's class decides whether it is
// memory of the GPU, memory of the system, or no memory. UVM maps RM's memory at the addresses that a program sees.
//
// An ioctl succeeds even if RM refuses the request: a status in its structure has the result. Few fields moved between
// branches; those need the version, which every client queries first.

#include "base/array.h"
#include "base/client_memory.h"
#include "base/kernel.h"
#include "base/libc.h"
#include "base/map.h"
#include "base/text.h"
#include "driver/decoders.h"
#include "host/host.h"
#include "trace/trace.h"

// Classes of the public headers class/cl*.h.
typedef struct {
    UInt class;
    Kind kind;
    Bool is_sized; // its parameters have the size, at the offset of NV_MEMORY_ALLOCATION_PARAMS
} MemoryClass;
static const MemoryClass memory_classes[] = {
    {0x3e, KIND_DRIVER_HOST, True},                                  // system memory
    {0x3f, KIND_DRIVER, True},                                       // GPU memory
    {0x40, KIND_DRIVER, True},       {0x42, KIND_DRIVER_HOST, True}, // memory of another node
    {0x81, KIND_DRIVER_HOST, False}, {0x82, KIND_DRIVER, False},     {0x83, KIND_DRIVER, False},
};
#define SYSTEM_MEMORY    0x3e
#define LOCAL_MEMORY     0x40
#define EXTENDED_MEMORY  0x42
#define VIRTUAL_MEMORY   0x50a0
#define IS_CLIENT(class) ((class) == 0 || (class) == 1 || (class) == 0x41)
#define IS_CHANNEL(class)                                                                                              \
    ((class) == 0xc36f || (class) == 0xc46f || (class) == 0xc56f || (class) == 0xc86f || (class) == 0xc96f ||          \
     (class) == 0xca6f)

// ---- objects -------------------------------------------------------------------------------------------------

// Memory of one or several objects: a duplicated object shares it.
typedef struct {
    DriverMemory *memory;
    UInt n_objects;
} Shared;

typedef struct RmObject {
    struct RmObject *next; // MapNode
    UWord key;             // MapNode: client and handle
    struct RmObject *parent, *children, *sibling;
    UInt class;
    Shared *shared;   // NULL: no memory of its own
    DriverFile *file; // of a client: the device that created it
} RmObject;

static Map objects = JM_MAP("jm.driver.rm");
static UInt version; // the driver's branch; 0: not yet known
static ULong n_unsized;
static UInt n_channels;

static inline UWord key_of(UInt client, UInt handle)
{
    return (UWord)client << 32 | handle;
}

static RmObject *find_object(UInt client, UInt handle)
{
    return jm_map_find(&objects, key_of(client, handle));
}

static void end_object(ThreadId tid, RmObject *object)
{
    if (!object)
        return;
    while (object->children)
        end_object(tid, object->children);
    if (object->parent) {
        RmObject **link = &object->parent->children;
        while (*link != object)
            link = &(*link)->sibling;
        *link = object->sibling;
    }
    jm_map_remove(&objects, object->key);
    if (object->shared && --object->shared->n_objects == 0) {
        jm_driver_memory_end(tid, object->shared->memory);
        host_free(object->shared);
    }
    n_channels -= IS_CHANNEL(object->class);
    host_free(object);
}

static RmObject *new_object(ThreadId tid, UInt client, UInt parent, UInt handle, UInt class)
{
    RmObject *stale = find_object(client, handle);
    if (stale)
        jm_driver_count(ODD_STALE);
    end_object(tid, stale);
    RmObject *object = host_alloc_zeroed("jm.driver.rm", 1, sizeof *object);
    object->key = key_of(client, handle);
    object->class = class;
    object->parent = handle == client ? NULL : find_object(client, parent);
    if (object->parent) {
        object->sibling = object->parent->children;
        object->parent->children = object;
    }
    n_channels += IS_CHANNEL(class);
    jm_map_add(&objects, object);
    return object;
}

// Adds an object, with its memory if the class is a memory class. `bytes` is valid if `is_sized`.
static void object_made(ThreadId tid, UInt client, UInt parent, UInt handle, UInt class, Bool is_sized, ULong bytes)
{
    RmObject *object = new_object(tid, client, parent, handle, class);
    const MemoryClass *memory = JM_ROW(memory_classes, m, m->class == class);
    if (!memory || !memory->is_sized || !is_sized) {
        n_unsized += memory != NULL;
        return;
    }
    object->shared = host_alloc_zeroed("jm.driver.rm", 1, sizeof *object->shared);
    *object->shared = (Shared){jm_driver_memory_commit(tid, memory->kind, bytes), 1};
}

static RmObject *client_of(const DriverFile *file)
{
    for (RmObject *object = NULL; (object = jm_map_next(&objects, object));)
        if (object->file == file)
            return object;
    return NULL;
}

void jm_rm_ended(ThreadId tid, DriverFile *file)
{
    for (RmObject *client; (client = client_of(file));)
        end_object(tid, client);
}

DriverMemory *jm_rm_attached(const DriverFile *file)
{
    RmObject *object = file->attached ? jm_map_find(&objects, file->attached) : NULL;
    return object && object->shared ? object->shared->memory : NULL;
}

// ---- escapes -------------------------------------------------------------------------------------------------

enum {
    ALLOC_MEMORY = 0x27,
    FREE = 0x29,
    ALLOC = 0x2b,
    DUP = 0x34,
    VID_HEAP_CONTROL = 0x4a,
    MAP_MEMORY = 0x4e,
    CHECK_VERSION = 210,
    XFER = 211
};

// Escapes that commit no memory (nv_escape.h and nv-ioctl-numbers.h).
static const UChar harmless[] = {0x2a, 0x32, 0x33, 0x35, 0x37, 0x38, 0x39, 0x41, 0x4d, 0x4f, 0x52,
                                 0x54, 0x56, 0x57, 0x58, 0x59, 0x5c, 0x5e, 0x5f, 200,  201,  206,
                                 207,  209,  212,  213,  214,  215,  216,  217,  218};

// NV_MEMORY_ALLOCATION_PARAMS (nvos.h) has the size at 64, as RM has rounded it.
static void object_allocated(ThreadId tid, const DriverCall *call)
{
    UInt client = jm_driver_in32(call, 0), handle = jm_driver_out32(call, 8), class = jm_driver_in32(call, 12);
    Addr parameters = jm_driver_in64(call, 16);
    ULong bytes = 0;
    if (IS_CLIENT(class)) {
        new_object(tid, handle, 0, handle, class)->file = call->file;
        return;
    }
    Bool is_sized = parameters && jm_read_bytes(parameters + 64, &bytes, sizeof bytes);
    object_made(tid, client, jm_driver_in32(call, 4), handle, class, is_sized, bytes);
}

// NVOS32_PARAMETERS: the function field.
enum { ALLOC_SIZE = 2, FREE_SIZE = 3, ALLOC_TILED = 6, ALLOC_RANGE = 14 }; // 27: the program's own pages, no new memory

#define FLAG_VIRTUAL     0x00080000
#define ATTR2_EGM        (1u << 24)
#define ATTR_LOCATION(a) ((a) >> 25 & 3)
#define LOCATION_VIDMEM  0

static void vid_heap(ThreadId tid, const DriverCall *call)
{
    UInt client = jm_driver_in32(call, 0), parent = jm_driver_in32(call, 4);
    switch (jm_driver_in32(call, 8)) {
    case ALLOC_SIZE: {
        UInt class = jm_driver_in32(call, 52) & FLAG_VIRTUAL                      ? VIRTUAL_MEMORY
                     : jm_driver_in32(call, 144) & ATTR2_EGM                      ? EXTENDED_MEMORY
                     : ATTR_LOCATION(jm_driver_in32(call, 56)) == LOCATION_VIDMEM ? LOCAL_MEMORY
                                                                                  : SYSTEM_MEMORY;
        object_made(tid, client, parent, jm_driver_out32(call, 44), class, True, jm_driver_out64(call, 88));
        break;
    }
    case FREE_SIZE:
        end_object(tid, find_object(client, jm_driver_in32(call, 44)));
        break;
    case ALLOC_TILED:
    case ALLOC_RANGE:
        n_unsized++;
        break;
    default:
        break;
    }
}

static void object_duplicated(ThreadId tid, const DriverCall *call)
{
    UInt client = jm_driver_in32(call, 0), handle = jm_driver_out32(call, 8);
    RmObject *source = find_object(jm_driver_in32(call, 12), jm_driver_in32(call, 16));
    RmObject *object = new_object(tid, client, jm_driver_in32(call, 4), handle, source ? source->class : 0xffff);
    if (source && source->shared) {
        object->shared = source->shared;
        object->shared->n_objects++;
    }
}

// The structure has the last offset: the size less one.
static void memory_allocated(ThreadId tid, const DriverCall *call)
{
    object_made(tid, jm_driver_in32(call, 0), jm_driver_in32(call, 4), jm_driver_out32(call, 8),
                jm_driver_in32(call, 12), True, jm_driver_out64(call, 32) + 1);
}

static void object_freed(ThreadId tid, const DriverCall *call)
{
    end_object(tid, find_object(jm_driver_in32(call, 0), jm_driver_in32(call, 8)));
}

static void memory_mapped(ThreadId tid, const DriverCall *call)
{
    DriverFile *file = jm_driver_fd(jm_driver_in32(call, 48));
    if (file)
        file->attached = key_of(jm_driver_in32(call, 0), jm_driver_in32(call, 8));
}

// Effects of escapes, and the offset of the status by the size of the structure (nvos.h). The first row that matches
// holds; `to` 0: all branches.
typedef struct {
    UChar nr;
    UChar bytes;
    UChar status;
    UShort from, to; // branches, inclusive
    void (*effect)(ThreadId tid, const DriverCall *call);
} Escape;
static const Escape escapes[] = {
    {FREE, 16, 12, 0, 0, object_freed},
    {ALLOC, 32, 24, 1, 534, object_allocated},
    {ALLOC, 32, 28, 0, 0, object_allocated},
    {ALLOC, 40, 32, 1, 524, object_allocated},
    {ALLOC, 40, 36, 0, 0, object_allocated},
    {ALLOC, 48, 40, 0, 0, object_allocated},
    {ALLOC_MEMORY, 56, 40, 0, 0, memory_allocated},
    {VID_HEAP_CONTROL, 184, 20, 0, 0, vid_heap},
    {MAP_MEMORY, 56, 40, 0, 0, memory_mapped},
    {DUP, 28, 24, 0, 0, object_duplicated},
};

// Returns the escape's number, and puts the structure that XFER wraps in the place of XFER's own. It is read only after
// the call: fields that are both in and out are needed as returned.
static UInt unwrap(DriverCall *call)
{
    UInt nr = call->command & 0xff;
    if (nr != XFER)
        return nr;
    // XFER: number, size, pointer
    Addr inner = jm_driver_in64(call, 8);
    SizeT bytes = jm_driver_in32(call, 4);
    nr = jm_driver_in32(call, 0);
    call->n_bytes = bytes;
    if (!jm_read_bytes(inner, call->out, bytes < sizeof call->out ? bytes : sizeof call->out)) {
        jm_driver_count(ODD_UNREADABLE);
        call->n_bytes = 0;
    }
    memcpy(call->in, call->out, sizeof call->in);
    return nr;
}

void jm_rm_after(ThreadId tid, DriverCall *call, Long result)
{
    if (jm_is_error(result))
        return;
    UInt nr = unwrap(call);
    if (nr == CHECK_VERSION) {
        HChar text[65], *rest;
        memcpy(text, call->out + 8, sizeof text - 1);
        text[sizeof text - 1] = 0;
        ULong n = jm_text_number(text, &rest);
        if (n >= 300 && n < 10000 && *rest == '.')
            version = n;
        return;
    }
    const Escape *escape = JM_ROW(
        escapes, e, e->nr == nr && e->bytes == call->n_bytes && (!e->to || (version >= e->from && version <= e->to)));
    if (escape && jm_driver_out32(call, escape->status) == 0)
        escape->effect(tid, call);
    // Or its structure has an unknown size. The number is as if unwrapped: directions, size, letter (linux/ioctl.h).
    if (!escape && !JM_ROW(harmless, h, *h == nr))
        jm_driver_unknown(call, 0xc0000000 | (call->n_bytes & 0x3fff) << 16 | 'F' << 8 | (nr & 0xff));
}

// ---- unified memory ------------------------------------------------------------------------------------------

enum {
    UVM_MAP_EXTERNAL = 33,
    UVM_FREE = 34,
    UVM_UNMAP_EXTERNAL = 66,
    UVM_SEMAPHORE_POOL = 68,
    UVM_CREATE_EXTERNAL = 73
};

// An address range that the program has registered with UVM.
typedef struct {
    Addr base;
    ULong bytes;
    DriverMemory *pool; // of a semaphore pool; else NULL
} UnifiedRange;

typedef struct {
    DriverMap *map;
    Array *ranges; // of UnifiedRange
} Unified;

static void range_ends(ThreadId tid, Unified *u, Word i)
{
    UnifiedRange range = *(UnifiedRange *)jm_array_at(u->ranges, i);
    jm_array_remove(u->ranges, i);
    jm_driver_map_remove(tid, u->map, range.base, range.bytes);
    if (range.pool)
        jm_driver_memory_end(tid, range.pool);
}

void jm_uvm_ended(ThreadId tid, DriverFile *file)
{
    Unified *u = file->object;
    if (!u)
        return;
    while (jm_array_n(u->ranges))
        range_ends(tid, u, jm_array_n(u->ranges) - 1);
    jm_array_delete(u->ranges);
    jm_driver_map_delete(tid, u->map);
    host_free(u);
}

// Offsets of the status (uvm_ioctl.h): structures hold 32 GPUs up to branch 545, and 256 from 550 on.
typedef struct {
    UInt command;
    UShort status[2];
} UvmStatus;
static const UvmStatus uvm_statuses[] = {
    {UVM_MAP_EXTERNAL, {1196, 9260}},
    {UVM_FREE, {16, 16}},
    {UVM_UNMAP_EXTERNAL, {0, 0}}, // ignored: a range that cannot be unmapped is not mapped
    {UVM_SEMAPHORE_POOL, {1176, 9240}},
    {UVM_CREATE_EXTERNAL, {16, 16}}};

// The last number in the headers up to 595. The numbers up to it that are not decoded commit only memory that the API
// reports.
#define UVM_LAST         79
#define UVM_INITIALIZE   0x30000001
#define UVM_DEINITIALIZE 0x30000002

static Bool uvm_has_succeeded(const DriverCall *call, Bool has_256)
{
    const UvmStatus *row = JM_ROW(uvm_statuses, s, s->command == call->command);
    UInt status, at = !row ? 0 : call->command == UVM_FREE && version >= 590 ? 8 : row->status[has_256];
    return row && (!at || (jm_read_uint(call->argument + at, &status) && status == 0));
}

void jm_uvm_after(ThreadId tid, DriverCall *call, Long result)
{
    Bool has_256 = version >= 550;
    if (jm_is_error(result))
        return;
    if (call->command > UVM_LAST && call->command != UVM_INITIALIZE && call->command != UVM_DEINITIALIZE)
        jm_driver_unknown(call, call->command);
    if (!uvm_has_succeeded(call, has_256))
        return;
    Unified *u = call->file->object;
    if (!u) {
        call->file->object = u = host_alloc_zeroed("jm.driver.uvm", 1, sizeof *u);
        u->map = jm_driver_map_new();
        u->ranges = jm_array_new("jm.driver.uvm", sizeof(UnifiedRange));
    }
    Addr base = jm_driver_in64(call, 0);
    ULong bytes = jm_driver_in64(call, 8);
    UnifiedRange range = {base, bytes, NULL};
    UInt client, handle, at = has_256 ? 9252 : 1188;
    RmObject *object;
    switch (call->command) {
    case UVM_CREATE_EXTERNAL:
        jm_array_add(u->ranges, &range);
        break;
    case UVM_SEMAPHORE_POOL:
        range.pool = jm_driver_memory_commit(tid, KIND_DRIVER_HOST, bytes);
        jm_array_add(u->ranges, &range);
        jm_driver_map_add(tid, u->map, base, bytes, NULL, range.pool);
        break;
    case UVM_MAP_EXTERNAL:
        jm_read_uint(call->argument + at, &client);
        jm_read_uint(call->argument + at + 4, &handle);
        object = find_object(client, handle);
        if (object && object->shared)
            jm_driver_map_add(tid, u->map, base, bytes, NULL, object->shared->memory);
        break;
    case UVM_UNMAP_EXTERNAL:
        jm_driver_map_remove(tid, u->map, base, bytes);
        break;
    case UVM_FREE:
        for (Word i = jm_array_n(u->ranges) - 1; i >= 0; i--)
            if (((UnifiedRange *)jm_array_at(u->ranges, i))->base == base)
                range_ends(tid, u, i);
        break;
    }
}

void jm_rm_write_counters(void)
{
    static ULong unsized, channels;
    jm_trace_changed("driver-objects-without-size", n_unsized, &unsized);
    jm_trace_changed("driver-rm-channels", n_channels, &channels);
}
