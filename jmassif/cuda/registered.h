// SPDX-License-Identifier: GPL-2.0-or-later
//
// Host memory that the program has registered with the driver (cudaHostRegister). It was allocated before, so it is not
// a block: only its sum in bytes is reported.

#ifndef JM_CUDA_REGISTERED_H
#define JM_CUDA_REGISTERED_H

#include "host/types.h"

// Registering the same address again (a runtime call over a driver call) counts once.
void jm_registered_add(Addr address, ULong bytes);
void jm_registered_set_context(Addr address, UWord context);
void jm_registered_remove(Addr address);

// Drops the context's ranges when it ends.
void jm_registered_close_context(UWord context);

ULong jm_registered_bytes(void);

#endif
