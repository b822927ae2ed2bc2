// SPDX-License-Identifier: GPL-2.0-or-later
//
// At the program's end the core lets the C library free its internal memory, which keeps it out of lists of leaks. The
// C library first flushes its streams. After exit() they are empty, but a program that calls _exit() expects their
// content to be lost: streams of a forked child begin with its parent's buffered output, which would be written twice.
// So libraries free their memory only if the program has called exit().

#include "host/valgrind/freeres.h"
#include "host/host.h"

#include "host/valgrind/compat.h"

static Bool of_libc, of_cxx; // the user's choice: --run-libc-freeres, --run-cxx-freeres

void jm_freeres_init(void)
{
    of_libc = VG_(clo_run_libc_freeres);
    of_cxx = VG_(clo_run_cxx_freeres);
    VG_(clo_run_libc_freeres) = VG_(clo_run_cxx_freeres) = False;
}

void host_exit_called(void)
{
    VG_(clo_run_libc_freeres) = of_libc;
    VG_(clo_run_cxx_freeres) = of_cxx;
}
