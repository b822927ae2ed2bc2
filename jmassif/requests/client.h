// SPDX-License-Identifier: GPL-2.0-or-later
//
// Requests from outside: from the program (jmassif.h, the wrappers, custom allocators) and from vgdb.

#pragma once

#include "host/types.h"

// Answer a request of the program. False if it is none of ours.
Bool jm_client_handle_request(ThreadId tid, UWord *args, UWord *result);

// A command of somebody who watches: help or snapshot, or the start of it.
void jm_client_monitor(const HChar *command);
