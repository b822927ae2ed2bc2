// SPDX-License-Identifier: GPL-2.0-or-later
//
// What stands in for a host when the recorder's readers are built for this machine, with sanitizers: a program
// of a few segments, and files that all hold the same bytes. A target hands the readers what it is given (the
// convention of libFuzzer).

#ifndef SHIM_H
#define SHIM_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

// A copy of bytes in pages of their own, with nothing readable behind the last. Up to MOST_SEGMENTS of them until
// shim_forget().
enum { MOST_SEGMENTS = 4, SEGMENT_BYTES = 1 << 20 };
unsigned char *shim_segment(const uint8_t *bytes, size_t n, int is_code);
void shim_forget(void);

// What every file holds from now on.
void shim_file(const uint8_t *bytes, size_t n);

// Numbers that follow from the input alone.
void shim_seed(const uint8_t *bytes, size_t n);
uint64_t shim_number(void);

#endif
