// SPDX-License-Identifier: GPL-2.0-or-later
//
// Descriptors of buffers in messages; see message.h. A message is read before it is sent, while its descriptors are
// still open, and after it was received. The receiver gets a new descriptor, so only the buffer's inode connects the
// two.

#include "driver/message.h"
#include "base/array.h"
#include "base/client_memory.h"
#include "base/kernel.h"
#include "driver/file.h"
#include "host/host.h"

#include <asm/unistd.h>
#include <sys/socket.h>

#define SO_PEERCRED 17

typedef struct {
    DriverFile *file;
    UWord socket;
    ThreadId sender; // during its sendmsg
} Sent;

static Array sent = JM_ARRAY("jm.driver", Sent);

static void drop_sent(ThreadId tid, Word i)
{
    DriverFile *file = ((Sent *)jm_array_at(&sent, i))->file;
    jm_array_remove(&sent, i);
    jm_driver_file_release(tid, file);
}

static void one_sent(ThreadId tid, UWord socket, UInt fd)
{
    DriverFile *file = jm_driver_fd(fd);
    if (!file)
        return;
    jm_driver_file_hold(file);
    jm_array_add(&sent, &(Sent){file, socket, tid});
}

static void one_received(ThreadId tid, UWord socket, UInt fd)
{
    DriverFile *file = jm_driver_file_behind(fd);
    if (!file)
        return;
    jm_driver_fd_set(tid, fd, file);
    const Sent *s = jm_array_find(&sent, &file, sizeof file);
    if (s)
        drop_sent(tid, s - (const Sent *)sent.records);
}

// Calls `use` with each descriptor in a message.
static void each_in_message(ThreadId tid, UWord socket, Addr message, void (*use)(ThreadId tid, UWord socket, UInt fd))
{
    UWord control, control_bytes;
    // struct msghdr: name and length, vectors and count, control at 32 and its length at 40
    if (!jm_read_word(message + 32, &control) || !jm_read_word(message + 40, &control_bytes))
        return;
    // struct cmsghdr: length, level, type; then data, padded to whole words
    for (UWord at = 0; control && at + 16 <= control_bytes;) {
        UWord bytes;
        UInt level, type, fd;
        if (!jm_read_word(control + at, &bytes) || !jm_read_uint(control + at + 8, &level) ||
            !jm_read_uint(control + at + 12, &type) || bytes < 16 || bytes > control_bytes - at)
            return;
        for (UWord i = 16; level == SOL_SOCKET && type == SCM_RIGHTS && i + 4 <= bytes; i += 4)
            if (jm_read_uint(control + at + i, &fd))
                use(tid, socket, fd);
        at += (bytes + sizeof(UWord) - 1) & ~(sizeof(UWord) - 1);
    }
}

static Bool is_own_socket(UWord socket)
{
    struct {
        Int pid, uid, gid;
    } peer;
    UInt bytes = sizeof peer;
    return jm_kernel_call(__NR_getsockopt, socket, SOL_SOCKET, SO_PEERCRED, (UWord)&peer, (UWord)&bytes) == 0 &&
           peer.pid == jm_process_id();
}

void jm_driver_before_send(ThreadId tid, UWord socket, Addr message)
{
    if (is_own_socket(socket))
        each_in_message(tid, socket, message, one_sent);
}

void jm_driver_after_send(ThreadId tid, Bool has_failed)
{
    for (Word i = jm_array_n(&sent) - 1; i >= 0; i--) {
        Sent *s = jm_array_at(&sent, i);
        if (s->sender != tid)
            continue;
        s->sender = HOST_NO_THREAD;
        if (has_failed)
            drop_sent(tid, i);
    }
}

void jm_driver_received(ThreadId tid, UWord socket, Addr message)
{
    each_in_message(tid, socket, message, one_received);
}

void jm_driver_socket_closes(ThreadId tid, UWord socket)
{
    for (Word i = jm_array_n(&sent) - 1; i >= 0; i--)
        if (((Sent *)jm_array_at(&sent, i))->socket == socket)
            drop_sent(tid, i);
}
