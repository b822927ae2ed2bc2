// SPDX-License-Identifier: GPL-2.0-or-later
//
// Client requests (malloc and its variants, those of jmassif.h and of the preload library), answered inside translated
// code. The core leaves translated code for each, goes through its scheduler and comes back, which costs more than most
// answers.

#ifndef JM_REQUEST_H
#define JM_REQUEST_H

#include "host/valgrind/compat.h"

// Add the answer to a superblock that ends with a request; return any other unchanged.
IRSB *jm_request_answer_at_once(IRSB *in);

// Answer a request of the program (tool.c). Return False for requests that are not for this tool.
Bool jm_tool_request(ThreadId tid, UWord *args, UWord *result);

#endif
