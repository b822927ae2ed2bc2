// SPDX-License-Identifier: GPL-2.0-or-later
//
// For a tool, death by a signal looks like an exit without a status. At the very end the core sends the fatal signal to
// its own process. The linker leads that call here (--wrap).

#include "host/valgrind/killed.h"

void __real_vgPlain_kill_self(Int signal);
void __wrap_vgPlain_kill_self(Int signal);

static void (*tell)(UInt signal);

void jm_on_killed(void (*told)(UInt signal))
{
    tell = told;
}

void __wrap_vgPlain_kill_self(Int signal)
{
    if (tell)
        tell(signal);
    __real_vgPlain_kill_self(signal);
}
