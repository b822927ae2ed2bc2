// SPDX-License-Identifier: GPL-2.0-or-later
//
// Registered host memory; see registered.h. Programs register a few large ranges, so a linear search is enough.

#include "cuda/registered.h"
#include "base/array.h"

typedef struct {
    Addr address;
    ULong bytes;
    UWord context; // 0: not known
} Registered;

static Array *registered; // of Registered

static Word registered_at(Addr address)
{
    if (!registered)
        registered = jm_array_new("jm.registered", sizeof(Registered));
    for (Word i = 0; i < jm_array_n(registered); i++)
        if (((Registered *)jm_array_at(registered, i))->address == address)
            return i;
    return -1;
}

void jm_registered_add(Addr address, ULong bytes)
{
    if (registered_at(address) >= 0)
        return;
    Registered fresh = {address, bytes, 0};
    jm_array_add(registered, &fresh);
}

void jm_registered_set_context(Addr address, UWord context)
{
    Word i = registered_at(address);
    if (i >= 0)
        ((Registered *)jm_array_at(registered, i))->context = context;
}

void jm_registered_remove(Addr address)
{
    Word i = registered_at(address);
    if (i >= 0)
        jm_array_remove(registered, i);
}

ULong jm_registered_bytes(void)
{
    ULong sum = 0;
    for (Word i = 0; registered && i < jm_array_n(registered); i++)
        sum += ((Registered *)jm_array_at(registered, i))->bytes;
    return sum;
}

void jm_registered_close_context(UWord context)
{
    for (Word i = registered ? jm_array_n(registered) - 1 : -1; i >= 0; i--)
        if (((Registered *)jm_array_at(registered, i))->context == context)
            jm_array_remove(registered, i);
}
