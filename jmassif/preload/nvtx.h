// SPDX-License-Identifier: GPL-2.0-or-later
//
// The preload library as a tool library for NVTX (nvtx.c).

#pragma once

// Path of this library; 0 if NVTX shall load no tool. Not to be freed.
char *jm_nvtx_library(void) __attribute__((visibility("hidden")));

// A request to the recorder, in the way of the host for which this is built.
unsigned long jm_nvtx_request(unsigned long request, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
    __attribute__((visibility("hidden")));
