// SPDX-License-Identifier: GPL-2.0-or-later
//
// See replaced.h. The originals are never looked up by dlsym, which libraries of the program replace, too: two that ask
// each other never end.

#define _GNU_SOURCE
#include "host/native/replaced.h"
#include "base/text.h"
#include "host/native/hook.h"

#include <dlfcn.h>

char *getenv(const char *name);

static const struct {
    const HChar *name;
    Addr here;
} functions[N_REPLACED] = {
    [REPLACED_DLOPEN] = {"dlopen", (Addr)dlopen}, [REPLACED_DLCLOSE] = {"dlclose", (Addr)dlclose},
    [REPLACED_DLSYM] = {"dlsym", (Addr)dlsym},    [REPLACED_DLVSYM] = {"dlvsym", (Addr)dlvsym},
    [REPLACED_GETENV] = {"getenv", (Addr)getenv},
};

Addr jm_native_original(Replaced function)
{
    static Addr originals[N_REPLACED];
    if (UNLIKELY(!originals[function]))
        originals[function] = jm_native_next(functions[function].name);
    return originals[function];
}

static Replaced find(const HChar *name)
{
    UInt i = 0;
    while (i < N_REPLACED && !jm_text_equal(functions[i].name, name))
        i++;
    return i;
}

Bool jm_native_is_replaced(const HChar *name)
{
    return find(name) < N_REPLACED;
}

Addr jm_native_replacement(const HChar *name, Addr function)
{
    Replaced r = name[0] == 'd' || name[0] == 'g' ? find(name) : N_REPLACED;
    return r < N_REPLACED && function == jm_native_original(r) ? functions[r].here : 0;
}
