// SPDX-License-Identifier: GPL-2.0-or-later
//
// NVTX, the annotations of NVIDIA's tools: ranges become regions, marks become marks. NVTX looks for a tool's library
// in the environment variable NVTX_INJECTION64_PATH, loads it and lets it put its functions into NVTX's tables. The
// preload library is such a library. The names of a domain's ranges begin with the domain's.

#ifndef JM_NVTX_H
#define JM_NVTX_H

#include "base/compat.h"

// One call, as the preload library tells it (preload/protocol.h). The result is NVTX's: a level, a range or a handle.
UWord jm_nvtx_call(ThreadId tid, UWord call, UWord domain, UWord form, UWord text);

// Writes the path of the preload library, which `inside` is an address of, to the program's memory. False if NVTX is to
// be left alone.
Bool jm_nvtx_library_path(Addr inside, HChar *to, SizeT size);

#endif
