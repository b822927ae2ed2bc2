// SPDX-License-Identifier: GPL-2.0-or-later
//
// The functions whose calls are recorded: the rows of preload/cuda_api.def, and functions that answer with the address
// of another.

#ifndef JM_NATIVE_CUDA_FUNCTIONS_H
#define JM_NATIVE_CUDA_FUNCTIONS_H

#include "host/types.h"

#include "preload/protocol.h"

enum { ROW_ENTRY_POINT = JM_N_ROWS, ROW_ENTRY_POINT_BY_VERSION, NATIVE_N_ROWS };

// Ways of passing arguments, see preload/cuda_api.def. STRUCTURE is that of dl_open_worker, for which dlopen is hooked.
typedef enum { WORDS, STRUCTURE, EXTENT_AT_1, EXTENT_AT_2, HANDLE64_AT_1, ID128_AT_2, PITCHED_AT_0 } Convention;

typedef struct {
    const HChar *name, *soname; // a glob of sonames
    UChar n_words, convention;
} NativeFunction;

extern const NativeFunction jm_native_functions[NATIVE_N_ROWS];

// The row of a function; -1: none.
Int jm_native_row(const HChar *name);

// Return whether a table of "GNU hash" may have one of the functions: it has a symbol of the same hash.
Bool jm_native_may_be_in(const UInt *gnu_hash);

Bool jm_native_is_drivers(Int row);

#endif
