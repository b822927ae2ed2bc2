// SPDX-License-Identifier: GPL-2.0-or-later
//
// Functions of the C library that this library exports under the same name, to be found first. An object that is loaded
// with RTLD_DEEPBIND, and one that asks dlsym with a handle, finds the C library's all the same.

#ifndef JM_NATIVE_REPLACED_H
#define JM_NATIVE_REPLACED_H

#include "host/types.h"

typedef enum {
    REPLACED_DLOPEN,
    REPLACED_DLCLOSE,
    REPLACED_DLSYM,
    REPLACED_DLVSYM,
    REPLACED_GETENV,
    N_REPLACED
} Replaced;

// The C library's function.
Addr jm_native_original(Replaced function);

// Return whether there is a replacement of that name.
Bool jm_native_is_replaced(const HChar *name);

// The replacement of a function with this name, if it is the C library's; else 0.
Addr jm_native_replacement(const HChar *name, Addr function);

#endif
