// SPDX-License-Identifier: GPL-2.0-or-later
//
// At the program's end the core has the C library free what it keeps for itself, so that this is in no list of what was
// left. The C library first writes what its streams have buffered. After exit() nothing is left there to be written,
// but a program that calls _exit() wants it lost: a forked child's streams begin with what its parent has buffered,
// which would be written twice. So nobody lets go of anything unless the program has come through exit().

#include "valgrind/freeres.h"

#include "base/compat.h"

static Bool of_libc, of_cxx; // what the user wants: --run-libc-freeres, --run-cxx-freeres

void jm_freeres_init(void)
{
    of_libc = VG_(clo_run_libc_freeres);
    of_cxx = VG_(clo_run_cxx_freeres);
    VG_(clo_run_libc_freeres) = VG_(clo_run_cxx_freeres) = False;
}

void jm_freeres_allow(void)
{
    VG_(clo_run_libc_freeres) = of_libc;
    VG_(clo_run_cxx_freeres) = of_cxx;
}
