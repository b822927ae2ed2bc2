// SPDX-License-Identifier: GPL-2.0-or-later
//
// The translation cache, kept between runs. Half of a script's start is translation of library code that the previous
// run has translated too: the same bytes at the same addresses.

#pragma once

#include "host/valgrind/compat.h"

// Compute the key of translations, which covers everything but the code that shapes them: the tool with Valgrind's core
// and VEX in it, the processor's capabilities, the options. A translation is valid under its own key only. False if the
// tool's file cannot be read.
Bool jm_code_key(ULong key[2], const VexTranslateArgs *args);

// Call after the options are parsed.
void jm_code_cache_init(void);

// Call with every superblock that the tool is given.
void jm_code_cache_instrumenting(const IRSB *block);

// Call after every system call of the program, to find object files that it maps (places.c).
void jm_places_after_syscall(UInt number, const UWord *args, SysRes res);

void jm_code_cache_end(void);
