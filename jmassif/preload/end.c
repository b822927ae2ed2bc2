// SPDX-License-Identifier: GPL-2.0-or-later
//
// Reports that the program ends by exit(), which runs this destructor. After destructors the C library flushes its
// buffers. _exit() and quick_exit() run no destructor and flush nothing, and the core must not flush for them
// (host/valgrind/freeres.h).

#include <valgrind/valgrind.h>

#include "preload/protocol.h"

static void __attribute__((destructor)) tell_end(void)
{
    VALGRIND_DO_CLIENT_REQUEST_STMT(JM_REQ_EXIT, 0, 0, 0, 0, 0);
}
