// SPDX-License-Identifier: GPL-2.0-or-later
//
// Sizes in bytes from structures of CUDA's public headers (driver_types.h, cuda.h), read from the program's memory.

#ifndef JM_CUDA_LAYOUT_H
#define JM_CUDA_LAYOUT_H

#include "host/types.h"

// cudaMallocArray(array, desc, width, height, flags), or with an extent cudaMalloc3DArray(array, desc, w, h, d, flags).
ULong jm_runtime_array_bytes(const UWord *words, Bool has_depth);

// cudaMallocMipmappedArray(array, desc, w, h, d, levels, flags): the sum of the levels that CUDA makes.
ULong jm_runtime_mipmap_bytes(const UWord *words);

// The array that a CUDA_ARRAY_DESCRIPTOR (or, with depth, CUDA_ARRAY3D_DESCRIPTOR) at `descriptor` describes.
ULong jm_driver_array_bytes(Addr descriptor, Bool has_depth, UWord n_levels);

// The same for descriptors before CUDA 3.2, with dimensions of 32 bits.
ULong jm_driver_array_v1_bytes(Addr descriptor, Bool has_depth);

// The size in a cudaExternalMemoryHandleDesc or CUDA_EXTERNAL_MEMORY_HANDLE_DESC.
ULong jm_external_memory_bytes(Addr descriptor);

#endif
