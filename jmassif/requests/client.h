// SPDX-License-Identifier: GPL-2.0-or-later
//
// Requests from outside: from the program (jmassif.h, the wrappers, custom allocators) and from vgdb.

#ifndef JM_CLIENT_H
#define JM_CLIENT_H

#include "base/compat.h"

// VG_(needs_client_requests) callback.
Bool jm_client_handle_request(ThreadId tid, UWord *args, UWord *result);

// Set the function to call when the program has called exit(), after most of its handlers.
void jm_client_on_exit(void (*called)(void));

#endif
