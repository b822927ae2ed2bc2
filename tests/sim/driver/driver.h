/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inside of the simulated libcuda. Everything that the API hands out (contexts, blocks, pools,
 * streams, …) is one `struct object` in a slot of one arena, so a handle is checked by asking
 * whether it is the address of a slot in use; blocks with an address are found through one sorted
 * map besides. All of it is guarded by one lock, taken in the exported functions (entry.h). */
#ifndef JMSIM_DRIVER_H
#define JMSIM_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../costs.h"
#include "../cuda_abi.h"
#include "../jmsim.h"

enum kind {
    UNUSED,
    CONTEXT,
    STREAM,
    EVENT,
    MODULE,
    GRAPH,
    DEVICE,
    MANAGED,
    PINNED,
    REGISTERED,
    ARRAY,
    MIPMAPPED_ARRAY,
    POOL,
    POOL_BLOCK,
    REGION,
    FREE_EXTENT,
    MEMORY,
    RESERVATION,
    MAPPING,
    IPC,
    EXTERNAL,
    BUFFER,
    DRIVER_BUFFER, /* what the kernel's driver gave */
};

/* What memory from the board is for: by the address that it needs. */
enum backing {
    UNMAPPED,   /* not even the GPU's */
    NO_ADDRESS, /* in the program */
    DEVICE_PAGES,
    LOW_PAGES, /* below 4 GiB */
    HOST_PAGES,
    MANAGED_PAGES,
};

struct object {
    enum kind kind;
    unsigned n_references;
    struct object *context; /* ends with it; NULL: with nobody */
    uintptr_t address;      /* 0: it has none */
    size_t bytes;           /* as asked for */
    size_t span_bytes;      /* of addresses */
    size_t board_bytes;     /* taken from the board for it alone */
    struct cost *cost;      /* host heap spent on it */

    /* A region's neighbours in its owner's list; an extent's neighbours in its region. */
    struct object *region, *before, *after;
    struct object *regions; /* of a context (slabs) or a pool (chunks) */
    struct object *buffers; /* where the board has device nodes; chained through .after */

    union {
        struct {
            struct object *rover; /* the next search starts here */
            size_t free_bytes;
        } in_region;
        struct {
            uint64_t release_threshold, reserved, reserved_high, used, used_high, max;
            size_t n_blocks;
            int reuse[3];
            bool destroyed;
        } in_pool;
        struct {
            int fd, handle_types;
            unsigned n_mappings;
            bool imported;
        } in_memory;
        struct {
            struct object *memory;
        } in_mapping;
        struct {
            struct object *pool;
        } in_block;
        struct {
            uint64_t pid, address;
        } in_ipc;
        struct {
            int fd;
        } in_external;
        struct {
            uint32_t handle;
            int fd; /* -1: none; or a channel's */
            bool on_gpu;
            enum backing backing;
        } in_buffer;
        struct {
            bool active;
        } in_context;
        struct {
            struct object *module; /* of its kernel */
        } in_graph;
    } u;
};

enum { DRIVER_VERSION = 13000 };

/* objects.c */
void sim_lock(void);
void sim_unlock(void);
struct object *object_new(enum kind kind);                       /* zeroed; NULL when the arena is full */
void object_delete(struct object *object);                       /* the slot is used again, except a context's */
struct object *object_check(const void *handle, enum kind kind); /* NULL: no such handle */
size_t object_count(void);                                       /* slots ever used */
struct object *object_slot(size_t i);                            /* its kind may be UNUSED */
bool map_insert(struct object *object);                          /* by its address */
void map_remove(struct object *object);
struct object *map_find(uintptr_t address);   /* the object whose address it is */
struct object *map_within(uintptr_t address); /* the object whose span covers it */
bool map_overlaps(uintptr_t address, size_t bytes);

/* board.c */
extern struct jmsim_stats live;
void board_setup(void);
bool board_integrated(void);
bool board_has_contents(void); /* device memory may be read and written */
/* Takes bytes from the board for the object, and addresses of span bytes where the backing has any. */
bool board_back(struct object *object, size_t bytes, size_t span, enum backing backing);
bool board_back_context(struct object *context, size_t bytes);
void board_unback(struct object *object);
uintptr_t pages_map(size_t bytes, bool below_4g); /* 0: no room */
void pages_unmap(uintptr_t address, size_t bytes);
size_t round_up(size_t bytes, size_t to); /* to: a power of two; saturates at SIZE_MAX & -to */
void amount_add(struct jmsim_amount *amount, size_t bytes);
void amount_remove(struct jmsim_amount *amount, size_t bytes);

/* nodes.c: memory from the kernel's driver, where there are device nodes (../board). Without them nothing is there. */
void nodes_setup(void);
bool nodes_there(void);
/* What a driver may still get: `bytes`, or what the machine has left if its memory is the board's (`of`). */
size_t nodes_free_bytes(size_t bytes, size_t of);
bool nodes_back(struct object *object, size_t span, enum backing backing);
bool nodes_back_context(struct object *context, size_t bytes);
void nodes_unback(struct object *object);
int nodes_file(const struct object *object); /* its memory as a descriptor to map; -1: none */
bool nodes_map(const struct object *memory, int fd, uintptr_t address, size_t bytes, size_t offset); /* into the GPU */
void nodes_unmap(uintptr_t address, size_t bytes);

/* region.c: slabs and pool chunks, cut into extents of 512-byte granules */
enum { GRANULE_BYTES = 512 };
struct object *region_new(struct object *owner, size_t bytes);  /* takes it from the board */
struct object *region_take(struct object *owner, size_t bytes); /* NULL: none has room */
struct object *region_give(struct object *extent);              /* returns its region */
bool region_idle(const struct object *region);
void region_end(struct object *owner, struct object *region);

/* context.c */
extern struct object *default_pool;
CUresult driver_started(void);
CUresult context_current(struct object **context); /* the usual checks, in the usual order */
CUresult device_check(CUdevice device);
int compute_capability(void); /* ten times the major one, and the minor one */

/* resources.c */
CUresult resource_new(enum kind kind, size_t device_bytes, unsigned heap_blocks, void *handle);
CUresult code_load(struct object *resource, size_t bytes); /* at the first call that needs it */
CUresult stream_check(CUstream stream);

/* memory.c, pool.c, sharing.c, resources.c: how objects of their kinds end */
void memory_end(struct object *object);
void pool_block_end(struct object *block);
void pools_release_idle(void); /* what a synchronisation does */
void sharing_end(struct object *object);
void resource_end(struct object *resource);

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        CUresult try_result_ = (call);                                                                                 \
        if (try_result_ != CUDA_SUCCESS)                                                                               \
            return try_result_;                                                                                        \
    } while (0)

#endif
