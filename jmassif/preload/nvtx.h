// SPDX-License-Identifier: GPL-2.0-or-later
//
// The tool library for NVTX that this library is.

#ifndef JM_PRELOAD_NVTX_H
#define JM_PRELOAD_NVTX_H

// Its path; 0 if NVTX shall load none.
char *jm_nvtx_library(void) __attribute__((visibility("hidden")));

#endif
