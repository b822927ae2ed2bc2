/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cuGetProcAddress, and the names of errors. The table of functions is the one that entry.h's macro
 * has the linker collect. A caller asks for a base name and a CUDA version and gets the newest form
 * not newer than that. With JMSIM_PROC_ADDRESS=twin it gets, for functions that deal in memory, a
 * hidden function that does the same: a tool that intercepts the exported symbols does not see it. */
#include <stdlib.h>
#include <string.h>

#include "../unknown.h"
#include "entry.h"

extern struct entry __start_jmsim_entries[] __attribute__((visibility("hidden")));
extern struct entry __stop_jmsim_entries[] __attribute__((visibility("hidden")));

/* What follows the base name: _v2, _ptsz, _v2_ptds, … 0: another function's name. */
static bool is_form_of(const char *name, const char *base, bool *per_thread)
{
    size_t length = strlen(base);
    if (strncmp(name, base, length) != 0)
        return false;
    const char *rest = name + length;
    if (rest[0] == '_' && rest[1] == 'v' && rest[2] >= '0' && rest[2] <= '9')
        rest += 3;
    *per_thread = strcmp(rest, "_ptsz") == 0 || strcmp(rest, "_ptds") == 0;
    return *per_thread || rest[0] == '\0';
}

static bool wants_twin(const char *name)
{
    static const char *const of_memory[] = {"cuMem", "cuArray",          "cuMipmappedArray",
                                            "cuIpc", "cuImportExternal", "cuDestroyExternal"};
    const char *mode = getenv("JMSIM_PROC_ADDRESS");
    if (!mode || strcmp(mode, "twin") != 0)
        return false;
    for (size_t i = 0; i < sizeof of_memory / sizeof *of_memory; i++)
        if (strncmp(name, of_memory[i], strlen(of_memory[i])) == 0)
            return true;
    return false;
}

static int look_up(const char *symbol, int version, bool per_thread, void **function)
{
    const struct entry *best = NULL;
    bool best_per_thread = false, known = false;
    for (const struct entry *entry = __start_jmsim_entries; entry < __stop_jmsim_entries; entry++) {
        bool this_per_thread;
        if (!is_form_of(entry->name, symbol, &this_per_thread))
            continue;
        known = true;
        if (entry->since > version || (this_per_thread && !per_thread))
            continue;
        bool better = !best || (this_per_thread && !best_per_thread) ||
                      (this_per_thread == best_per_thread && entry->since > best->since);
        if (better) {
            best = entry;
            best_per_thread = this_per_thread;
        }
    }
    if (!best)
        return known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    *function = wants_twin(best->name) ? best->twin : best->exported;
    return CU_GET_PROC_ADDRESS_SUCCESS;
}

DRIVER_API(cuGetProcAddress_v2, 12000, (const char *symbol, void **function, int version, uint64_t flags, int *status),
           (symbol, function, version, flags, status))
{

    if (!symbol || !function || version > DRIVER_VERSION || flags > 2)
        return CUDA_ERROR_INVALID_VALUE;
    *function = NULL;
    int found = look_up(symbol, version, flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, function);
    if (status)
        *status = found;
    return CUDA_SUCCESS;
}

DRIVER_API(cuGetProcAddress, 11030, (const char *symbol, void **function, int version, uint64_t flags),
           (symbol, function, version, flags))
{
    TRY(do_cuGetProcAddress_v2(symbol, function, version, flags, NULL));
    return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* Tables of functions that no header documents. NVIDIA's own runtime needs them. */
DRIVER_API(cuGetExportTable, 3000, (const void **table, const void *id), (table, id))
{
    (void)table, (void)id;
    unknown_count("cuGetExportTable");
    return CUDA_ERROR_NOT_SUPPORTED;
}

/* Errors. */

static const struct {
    CUresult code;
    const char *name, *text;
} errors[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ERROR_FILE_NOT_FOUND, "CUDA_ERROR_FILE_NOT_FOUND", "file not found"},
    {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_CONTEXT_IS_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
    {CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
     "part or all of the requested memory range is already mapped"},
    {CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
     "pointer does not correspond to a registered memory region"},
    {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static CUresult error_find(CUresult error, size_t *at)
{
    for (*at = 0; *at < sizeof errors / sizeof *errors; ++*at)
        if (errors[*at].code == error)
            return CUDA_SUCCESS;
    return CUDA_ERROR_INVALID_VALUE;
}

DRIVER_API(cuGetErrorString, 6000, (CUresult error, const char **text), (error, text))
{
    size_t at;
    TRY(error_find(error, &at));
    *text = errors[at].text;
    return CUDA_SUCCESS;
}

DRIVER_API(cuGetErrorName, 6000, (CUresult error, const char **text), (error, text))
{
    size_t at;
    TRY(error_find(error, &at));
    *text = errors[at].name;
    return CUDA_SUCCESS;
}
