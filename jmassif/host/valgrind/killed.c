// SPDX-License-Identifier: GPL-2.0-or-later
//
// For a tool, death by a signal looks like an exit without a status. At the very end the core sends the fatal signal to
// its own process. The linker leads that call here (--wrap), if configure found it.

#include "host/valgrind/killed.h"

#ifdef TELLS_FATAL_SIGNAL

void __real_vgPlain_kill_self(Int signal);
void __wrap_vgPlain_kill_self(Int signal);

static void (*tell)(UInt signal);

Bool jm_on_killed(void (*told)(UInt signal))
{
    tell = told;
    return True;
}

void __wrap_vgPlain_kill_self(Int signal)
{
    if (tell)
        tell(signal);
    __real_vgPlain_kill_self(signal);
}

#else

Bool jm_on_killed(void (*told)(UInt signal))
{
    return False;
}

#endif
