/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory from the kernel's driver, where the board has device nodes: those that jmsim-board simulates, no others. An
 * object's buffers are chained from it, newest first. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../board/jmsim_board.h"
#include "nodes.h"

static const struct nodes *nodes;

int node_open(const char *path)
{
    return open(path, O_RDWR | O_CLOEXEC);
}

void nodes_setup(void)
{
    int simulated = node_open(JMSIM_BOARD_NODE);
    if (simulated < 0)
        return;
    close(simulated);
    nodes = nodes_rm.begin() ? &nodes_rm : nodes_nvmap.begin() ? &nodes_nvmap : NULL;
}

bool nodes_there(void)
{
    return nodes;
}

/* By hand, because the simulation's own book-keeping stays off the heap. */
static size_t figure_of(const char *text, const char *label)
{
    const char *at = strstr(text, label);
    return at ? (size_t)strtoull(at + strlen(label), NULL, 10) << 10 : 0;
}

size_t nodes_free_bytes(size_t bytes, size_t of)
{
    char text[4096];
    int fd = nodes ? open("/proc/meminfo", O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return bytes;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    /* On an Orin, which is simulated with a reserve (--cma), pages of files count as in use. */
    size_t available = figure_of(text, figure_of(text, "CmaTotal:") ? "MemFree:" : "MemAvailable:");
    return figure_of(text, "MemTotal:") == of && available < bytes ? available : bytes;
}

struct object *buffer_take(struct object *owner, size_t bytes, enum backing backing)
{
    struct object *buffer = object_new(DRIVER_BUFFER);
    if (!buffer)
        return NULL;
    buffer->u.in_buffer.fd = -1;
    buffer->u.in_buffer.backing = backing;
    buffer->span_bytes = bytes;
    if (!nodes->take(buffer, bytes, backing)) {
        object_delete(buffer);
        return NULL;
    }
    buffer->after = owner->buffers;
    owner->buffers = buffer;
    return buffer;
}

bool nodes_back(struct object *object, size_t span, enum backing backing)
{
    struct object *buffer = buffer_take(object, span, backing);
    if (buffer && backing != NO_ADDRESS)
        object->address = buffer->address;
    return buffer;
}

bool nodes_back_context(struct object *context, size_t bytes)
{
    if (nodes->context(context, bytes))
        return true;
    nodes_unback(context);
    return false;
}

void nodes_unback(struct object *object)
{
    while (object->buffers) {
        struct object *buffer = object->buffers;
        object->buffers = buffer->after;
        nodes->give(buffer);
        object_delete(buffer);
    }
}

int nodes_file(const struct object *object)
{
    return nodes->file(object->buffers);
}

bool nodes_map(const struct object *memory, int fd, uintptr_t address, size_t bytes, size_t offset)
{
    return nodes->map(memory->buffers, fd, address, bytes, offset);
}

void nodes_unmap(uintptr_t address, size_t bytes)
{
    nodes->unmap(address, bytes);
}
