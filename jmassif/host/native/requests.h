// SPDX-License-Identifier: GPL-2.0-or-later
//
// Requests of preload/protocol.h and jmassif.h, made by hooks of this library.

#ifndef JM_NATIVE_REQUESTS_H
#define JM_NATIVE_REQUESTS_H

#include "host/native/hook.h"

// Take the lock and make a request; 0 if nothing is recorded. `registers` are those of the hook.
UWord jm_native_request(const NativeRegisters *registers, UWord request, UWord a, UWord b, UWord c, UWord d, UWord e);

// Report the end of a call of a row of preload/cuda_api.def, and make the queries that this leads to.
void jm_native_leave(const NativeRegisters *registers, UWord row, UWord result, const UWord *words, Addr function);

// To be used in the hook itself, whose frame must stay until the end.
#define NATIVE_REQUEST(request, a, b, c, d)                                                                            \
    ({                                                                                                                 \
        NativeRegisters here_;                                                                                         \
        NATIVE_REGISTERS(&here_);                                                                                      \
        jm_native_request(&here_, request, (UWord)(a), (UWord)(b), (UWord)(c), (UWord)(d), 0);                         \
    })

#endif
