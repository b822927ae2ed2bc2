// SPDX-License-Identifier: GPL-2.0-or-later
//
// Host memory that the driver was told of (cudaHostRegister). It exists already, so it is no block; only its sum is
// kept.

#ifndef JM_CUDA_REGISTERED_H
#define JM_CUDA_REGISTERED_H

#include "base/compat.h"

// Registering the same address again (a runtime call over a driver call) counts once.
void jm_registered_add(Addr address, ULong bytes);
void jm_registered_set_context(Addr address, UWord context);
void jm_registered_remove(Addr address);

// The context's end forgets what was registered with it.
void jm_registered_close_context(UWord context);

ULong jm_registered_bytes(void);

#endif
