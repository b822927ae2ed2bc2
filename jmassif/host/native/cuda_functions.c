// SPDX-License-Identifier: GPL-2.0-or-later
//
// The recorded functions by name; see cuda_functions.h.

#include "host/native/cuda_functions.h"
#include "base/text.h"
#include "host/native/objects.h"

// Sonames of the libraries that have them, as the wrappers below Valgrind know them (preload/wrap.c).
#define SONAME_RUNTIME    "*" // any object, as the runtime may be linked statically
#define SONAME_DRIVER     "libcuda.so*"
#define SONAME_CUDNN      "libcudnn*"
#define SONAME_CUBLAS     "libcublas*"
#define SONAME_CUFFT      "libcufft*"
#define SONAME_CUSPARSE   "libcusparse*"
#define SONAME_CUSOLVER   "libcusolver*"
#define SONAME_CURAND     "libcurand*"
#define SONAME_NCCL       "libnccl*"
#define SONAME_NVINFER    "libnvinfer*"
#define SONAME_C10        "libc10*"
#define SONAME_TENSORFLOW "libtensorflow*"
#define SONAME_LOADER     "ld-linux*"
#define SONAME_PYTHON     "*"

#define API(library, name, n_args, convention, action, kind, p, s) {#name, SONAME_##library, n_args, convention},
const NativeFunction jm_native_functions[NATIVE_N_ROWS] = {
#include "preload/cuda_api.def"
    [ROW_ENTRY_POINT] = {"cudaGetDriverEntryPoint", "*", 4, WORDS},
    [ROW_ENTRY_POINT_BY_VERSION] = {"cudaGetDriverEntryPointByVersion", "*", 5, WORDS},
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
static UInt gnu_hashes[N_NAMES];
static Bool has_chains;
static Bool begins_a_name[N_CHAINS]; // by the first letters alone, which tell most other names apart

static UInt place_of(const HChar *name, UInt n_letters)
{
    UInt hash = 0;
    for (UInt i = 0; i < n_letters && name[i]; i++)
        hash = hash * 31 + (UChar)name[i];
    return (hash ^ hash >> 9) % N_CHAINS;
}

#define FEW 6

// Without reading all of a long mangled one.
static UInt chain_of(const HChar *name)
{
    return place_of(name, 20);
}

Bool jm_native_is_drivers(Int row)
{
    return jm_text_equal(jm_native_functions[row].soname, SONAME_DRIVER);
}

// At the start, when there is one thread.
static void make_chains(void)
{
    for (Int i = 0; i < N_NAMES; i++) {
        if (i == JM_ROW_dl_open_worker) // dlopen itself is a hook (loader.c)
            continue;
        Short *chain = &chains[chain_of(name_at(i))];
        next_in_chain[i] = *chain;
        *chain = (Short)(i + 1);
        begins_a_name[place_of(name_at(i), FEW)] = True;
        gnu_hashes[i] = jm_gnu_hash(name_at(i));
    }
    has_chains = True;
}

Int jm_native_row(const HChar *name)
{
    if (UNLIKELY(!has_chains))
        make_chains();
    if (LIKELY(!begins_a_name[place_of(name, FEW)]))
        return -1;
    for (Int i = chains[chain_of(name)]; i; i = next_in_chain[i - 1])
        if (jm_text_equal(name_at(i - 1), name))
            return i <= NATIVE_N_ROWS ? i - 1 : aliases[i - 1 - NATIVE_N_ROWS].row;
    return -1;
}

Bool jm_native_may_be_in(const UInt *gnu_hash)
{
    if (UNLIKELY(!has_chains))
        make_chains();
    for (Int i = 0; i < N_NAMES; i++)
        if (jm_gnu_hash_has(gnu_hash, gnu_hashes[i]))
            return True;
    return False;
}
