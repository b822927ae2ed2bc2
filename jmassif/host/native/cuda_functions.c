// SPDX-License-Identifier: GPL-2.0-or-later
//
// The recorded functions by name; see cuda_functions.h.

#include "host/native/cuda_functions.h"
#include "base/text.h"

#define IS_DRIVERS_DRIVER     True
#define IS_DRIVERS_RUNTIME    False
#define IS_DRIVERS_CUDNN      False
#define IS_DRIVERS_CUBLAS     False
#define IS_DRIVERS_CUFFT      False
#define IS_DRIVERS_CUSPARSE   False
#define IS_DRIVERS_CUSOLVER   False
#define IS_DRIVERS_CURAND     False
#define IS_DRIVERS_NCCL       False
#define IS_DRIVERS_NVINFER    False
#define IS_DRIVERS_C10        False
#define IS_DRIVERS_TENSORFLOW False
#define IS_DRIVERS_LOADER     False
#define IS_DRIVERS_PYTHON     False

#define API(library, name, n_args, convention, action, kind, p, s) {#name, n_args, convention, IS_DRIVERS_##library},
const NativeFunction jm_native_functions[NATIVE_N_ROWS] = {
#include "preload/cuda_api.def"
    [ROW_ENTRY_POINT] = {"cudaGetDriverEntryPoint", 4, WORDS, False},
    [ROW_ENTRY_POINT_BY_VERSION] = {"cudaGetDriverEntryPointByVersion", 5, WORDS, False},
};
#undef API

static const struct {
    const HChar *name;
    Int row;
} aliases[] = {{"cudaGetDriverEntryPoint_ptsz", ROW_ENTRY_POINT},
               {"cudaGetDriverEntryPointByVersion_ptsz", ROW_ENTRY_POINT_BY_VERSION}};
enum { N_ALIASES = sizeof aliases / sizeof *aliases, N_NAMES = NATIVE_N_ROWS + N_ALIASES };

static const HChar *name_at(Int index)
{
    return index < NATIVE_N_ROWS ? jm_native_functions[index].name : aliases[index - NATIVE_N_ROWS].name;
}

#define N_CHAINS 512
static Short chains[N_CHAINS], next_in_chain[N_NAMES]; // 1 + index
static Bool has_chains;

// A few of the first letters tell most other names apart, without reading all of a long mangled one.
static UInt chain_of(const HChar *name)
{
    UInt hash = 0;
    for (UInt i = 0; i < 20 && name[i]; i++)
        hash = hash * 31 + (UChar)name[i];
    return (hash ^ hash >> 9) % N_CHAINS;
}

// At the start, when there is one thread.
static void make_chains(void)
{
    for (Int i = 0; i < N_NAMES; i++) {
        Short *chain = &chains[chain_of(name_at(i))];
        next_in_chain[i] = *chain;
        *chain = (Short)(i + 1);
    }
    has_chains = True;
}

Int jm_native_row(const HChar *name)
{
    if (UNLIKELY(!has_chains))
        make_chains();
    for (Int i = chains[chain_of(name)]; i; i = next_in_chain[i - 1])
        if (jm_text_equal(name_at(i - 1), name))
            return i <= NATIVE_N_ROWS ? i - 1 : aliases[i - 1 - NATIVE_N_ROWS].row;
    return -1;
}
