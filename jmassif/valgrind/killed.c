// SPDX-License-Identifier: GPL-2.0-or-later
//
// A signal that kills the program ends it for the tool as an exit does, without a status. Only when all is over the
// core sends the process the signal that it died of, and the linker leads that call here (--wrap), where configure
// found it.

#include "valgrind/killed.h"

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
