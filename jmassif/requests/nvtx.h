// SPDX-License-Identifier: GPL-2.0-or-later
//
// NVTX, the annotations of NVIDIA's tools: ranges become regions, marks become marks. NVTX loads the tool library that
// the environment variable NVTX_INJECTION64_PATH names, and lets it put its functions into NVTX's tables. The preload
// library is such a library. Ranges of a domain are prefixed with the domain's name.

#pragma once

#include "host/types.h"

// Handle a call that the preload library has forwarded (preload/protocol.h). Return NVTX's result: a level, a range or
// a handle; 0 for any other call.
UWord jm_nvtx_call(ThreadId tid, UWord call, UWord domain, UWord form, UWord text);

// Write the path of the preload library, which is mapped at `inside`, to the program's memory at `to`. False with
// --nvtx=no, or if `size` is too small.
Bool jm_nvtx_library_path(Addr inside, HChar *to, SizeT size);
