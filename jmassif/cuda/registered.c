// SPDX-License-Identifier: GPL-2.0-or-later
//
// Registered host memory; see registered.h. Programs register a few large ranges, so a linear search is enough.

#include "cuda/registered.h"

typedef struct {
    Addr address;
    ULong bytes;
    UWord context; // 0: not known
} Registered;

static XArray *registered; // of Registered

static Word registered_at(Addr address)
{
    if (!registered)
        registered = VG_(newXA)(VG_(malloc), "jm.registered", VG_(free), sizeof(Registered));
    for (Word i = 0; i < VG_(sizeXA)(registered); i++)
        if (((Registered *)VG_(indexXA)(registered, i))->address == address)
            return i;
    return -1;
}

void jm_registered_add(Addr address, ULong bytes)
{
    if (registered_at(address) >= 0)
        return;
    Registered fresh = {address, bytes, 0};
    VG_(addToXA)(registered, &fresh);
}

void jm_registered_set_context(Addr address, UWord context)
{
    Word i = registered_at(address);
    if (i >= 0)
        ((Registered *)VG_(indexXA)(registered, i))->context = context;
}

void jm_registered_remove(Addr address)
{
    Word i = registered_at(address);
    if (i >= 0)
        VG_(removeIndexXA)(registered, i);
}

ULong jm_registered_bytes(void)
{
    ULong sum = 0;
    for (Word i = 0; registered && i < VG_(sizeXA)(registered); i++)
        sum += ((Registered *)VG_(indexXA)(registered, i))->bytes;
    return sum;
}

void jm_registered_close_context(UWord context)
{
    for (Word i = registered ? VG_(sizeXA)(registered) - 1 : -1; i >= 0; i--)
        if (((Registered *)VG_(indexXA)(registered, i))->context == context)
            VG_(removeIndexXA)(registered, i);
}
