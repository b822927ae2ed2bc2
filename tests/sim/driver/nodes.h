/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The two kinds of kernel driver that libcuda knows: nvmap with nvgpu, and the resource manager with unified memory. */
#ifndef JMSIM_NODES_H
#define JMSIM_NODES_H

#include "driver.h"

struct nodes {
    bool (*begin)(void); /* opens the nodes; false: they are not there */
    /* A buffer of the kernel's, with addresses as the backing says; false: no memory. */
    bool (*take)(struct object *buffer, size_t bytes, enum backing backing);
    void (*give)(struct object *buffer);
    int (*file)(const struct object *buffer);
    bool (*map)(const struct object *buffer, int fd, uintptr_t address, size_t bytes, size_t offset);
    void (*unmap)(uintptr_t address, size_t bytes);
    bool (*context)(struct object *context, size_t bytes); /* all that a context takes */
};

extern const struct nodes nodes_nvmap, nodes_rm;

struct object *buffer_take(struct object *owner, size_t bytes, enum backing backing); /* NULL: no memory */
int node_open(const char *path);

/* The fields of a command's structure. */
typedef uint32_t field32 __attribute__((may_alias));
typedef uint64_t field64 __attribute__((may_alias));
#define FIELD32(structure, offset) (*(field32 *)((char *)(structure) + (offset)))
#define FIELD64(structure, offset) (*(field64 *)((char *)(structure) + (offset)))

#endif
