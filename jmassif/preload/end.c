// SPDX-License-Identifier: GPL-2.0-or-later
//
// The program ends by exit(), which destructors are run by. What follows there is the C library's own writing of what
// it has buffered; _exit() and quick_exit() have none of that, and the core must not do it in their place
// (valgrind/freeres.h).

#include <valgrind/valgrind.h>

#include "preload/protocol.h"

static void __attribute__((destructor)) tell_end(void)
{
    VALGRIND_DO_CLIENT_REQUEST_STMT(JM_REQ_EXIT, 0, 0, 0, 0, 0);
}
