/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a program may ask the simulated board itself: its books. No board has this node, and no profiler knows it, so it
 * is the one figure that a ledger can be held against. Any descriptor of a device of the board answers the same. */
#ifndef JMSIM_BOARD_H
#define JMSIM_BOARD_H

#include <stdint.h>
#include <sys/ioctl.h>

#define JMSIM_BOARD_NODE "/dev/jmsim-board"

/* As they are now, over all processes unless it says otherwise. */
struct jmsim_books {
    uint64_t committed_bytes; /* the four below */
    uint64_t nvmap_bytes;     /* allocated buffers, until the last reference is gone */
    uint64_t vidmem_bytes;    /* memory objects of the resource manager, by where they are */
    uint64_t sysmem_bytes;
    uint64_t semaphore_bytes; /* unified memory's semaphore pools */
    uint64_t process_bytes;   /* of committed_bytes, what the asking process allocated */
    uint64_t managed_bytes;   /* addresses of managed memory in the asking process; not committed */
    uint64_t wrapped_bytes;   /* the program's own pages, handed to the GPU; not committed */
    uint32_t n_buffers;       /* nvmap, those without memory included */
    uint32_t n_handles;       /* nvmap's clients' references */
    uint32_t n_mappings;      /* in GPU address spaces */
    uint32_t n_objects;       /* of the resource manager, clients included */
    uint32_t n_files;         /* open descriptions of devices; not buffers */
    uint32_t release;         /* index in the order r32, r35, r36, r38, rm535, rm580, r39 */
};

#define JMSIM_BOARD_BOOKS _IOR('J', 0xb0, struct jmsim_books)

/* A dmabuf that another driver (a camera's, say) made: `bytes` in, `fd` out. It is in nobody's books here. */
struct jmsim_foreign {
    uint64_t bytes;
    int32_t fd;
    uint32_t padding;
};

#define JMSIM_BOARD_FOREIGN _IOWR('J', 0xb1, struct jmsim_foreign)

#endif
