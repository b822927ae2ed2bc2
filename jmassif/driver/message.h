// SPDX-License-Identifier: GPL-2.0-or-later
//
// Descriptors of buffers in messages (SCM_RIGHTS) between the program's own sockets. A descriptor that was sent and not
// yet received keeps its buffer alive. One sent to another process is no longer counted here.

#ifndef JM_DRIVER_MESSAGE_H
#define JM_DRIVER_MESSAGE_H

#include "host/types.h"

// Call around sendmsg. The message's descriptors hold their buffers until received, unless the call fails.
void jm_driver_before_send(ThreadId tid, UWord socket, Addr message);
void jm_driver_after_send(ThreadId tid, Bool has_failed);

// Call after recvmsg: sets the program's new descriptors of known buffers.
void jm_driver_received(ThreadId tid, UWord socket, Addr message);

// Drops the descriptors that were sent to a socket of the program and not received.
void jm_driver_socket_closes(ThreadId tid, UWord socket);

#endif
