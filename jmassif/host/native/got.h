// SPDX-License-Identifier: GPL-2.0-or-later
//
// Global offset tables: the places through which the program's objects call each other. To export CUDA's functions from
// here, as is done with malloc, would not do: each caller's own libcudart must be called, and there may be several.

#ifndef JM_NATIVE_GOT_H
#define JM_NATIVE_GOT_H

#include "host/types.h"

// Put stubs (stubs.h) into the tables of objects that have been loaded since the last call, and forget those that have
// gone. Takes the loader's lock; not to be called under the recorder's. False if another thread is loading an object,
// which must be left alone.
Bool jm_native_patch(void);

// The program loads an object with RTLD_DEEPBIND.
void jm_native_binds_deeply(void);

#endif
