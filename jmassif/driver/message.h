// SPDX-License-Identifier: GPL-2.0-or-later
//
// Descriptors of buffers that travel in a message (SCM_RIGHTS) between the program's own sockets. What is in a socket,
// sent and not yet received, keeps its buffer alive like a descriptor. What is sent to another process is that
// process's from then on.

#ifndef JM_DRIVER_MESSAGE_H
#define JM_DRIVER_MESSAGE_H

#include "base/compat.h"

// Around sendmsg: what is in the message is on its way, unless the call fails.
void jm_driver_before_send(ThreadId tid, UWord socket, Addr message);
void jm_driver_after_send(ThreadId tid, Bool has_failed);

// After recvmsg: descriptors of known buffers are the program's.
void jm_driver_received(ThreadId tid, UWord socket, Addr message);

// What nobody has received is gone.
void jm_driver_socket_closes(ThreadId tid, UWord socket);

#endif
