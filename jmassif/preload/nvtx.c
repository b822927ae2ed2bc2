// SPDX-License-Identifier: GPL-2.0-or-later
//
// A tool library for NVTX in both its forms, libnvToolsExt and the header-only NVTX 3. At its first call, NVTX reads
// the library's path from the environment, loads it, and lets it fill NVTX's tables with its functions. The program's
// environment stays unchanged: environment.c answers only NVTX's query, and only if no other tool is set.

#include <stddef.h>
#include <stdint.h>

#include "preload/nvtx.h"
#include "preload/protocol.h"

typedef unsigned long UWord;

#define CALL(type, name, parameters, ...)                                                                              \
    static type name parameters                                                                                        \
    {                                                                                                                  \
        return (type)jm_nvtx_request(JM_REQ_NVTX, __VA_ARGS__);                                                        \
    }
#define CALL_WITH_TEXT(type, name, call)                                                                               \
    CALL(type, name##_attributes, (const void *attributes), call, 0, JM_NVTX_ATTRIBUTES, (UWord)attributes)            \
    CALL(type, name##_bytes, (const char *text), call, 0, JM_NVTX_BYTES, (UWord)text)                                  \
    CALL(type, name##_in_domain, (UWord domain, const void *attributes), call, domain, JM_NVTX_ATTRIBUTES,             \
         (UWord)attributes)

CALL_WITH_TEXT(void, mark, JM_NVTX_MARK)
CALL_WITH_TEXT(int, push, JM_NVTX_PUSH)
CALL_WITH_TEXT(uint64_t, start, JM_NVTX_START)
CALL(int, push_wide, (const void *text), JM_NVTX_PUSH, 0, JM_NVTX_BYTES, 0 * (UWord)text) // keeps pops in step
CALL(int, pop, (void), JM_NVTX_POP, 0, 0, 0)
CALL(int, pop_in_domain, (UWord domain), JM_NVTX_POP, domain, 0, 0)
CALL(void, end, (uint64_t range), JM_NVTX_END, 0, 0, range)
CALL(void, end_in_domain, (UWord domain, uint64_t range), JM_NVTX_END, 0, 0, range)
CALL(UWord, create_domain, (const char *name), JM_NVTX_CREATE_DOMAIN, 0, JM_NVTX_BYTES, (UWord)name)
CALL(UWord, register_string, (UWord domain, const char *text), JM_NVTX_REGISTER_STRING, domain, JM_NVTX_BYTES,
     (UWord)text)

// The numbers are NVTX's interface to tools (nvtxDetail/nvtxTypes.h of NVTX 3; libnvToolsExt of CUDA 11 has the same).
enum { TABLE_OF_CALLBACKS = 1 };
enum { MODULE_CORE = 1, MODULE_CORE2 = 5 };

typedef void (*Function)(void);

struct callbacks {
    size_t struct_size;
    int (*get_module)(int module, Function ***table, unsigned *size);
};

struct slot {
    unsigned char module, index;
    Function function;
};

// Functions of texts of wchar_t are left to NVTX, which then does nothing.
static const struct slot slots[] = {
    {MODULE_CORE, 1, (Function)mark_attributes},
    {MODULE_CORE, 2, (Function)mark_bytes},
    {MODULE_CORE, 4, (Function)start_attributes},
    {MODULE_CORE, 5, (Function)start_bytes},
    {MODULE_CORE, 7, (Function)end},
    {MODULE_CORE, 8, (Function)push_attributes},
    {MODULE_CORE, 9, (Function)push_bytes},
    {MODULE_CORE, 10, (Function)push_wide},
    {MODULE_CORE, 11, (Function)pop},
    {MODULE_CORE2, 1, (Function)mark_in_domain},
    {MODULE_CORE2, 2, (Function)start_in_domain},
    {MODULE_CORE2, 3, (Function)end_in_domain},
    {MODULE_CORE2, 4, (Function)push_in_domain},
    {MODULE_CORE2, 5, (Function)pop_in_domain},
    {MODULE_CORE2, 10, (Function)register_string},
    {MODULE_CORE2, 12, (Function)create_domain},
};

// NVTX calls this once it has loaded this library. 1: the tool takes part.
__attribute__((visibility("default"))) int InitializeInjectionNvtx2(const void *(*get_table)(uint32_t id))
{
    const struct callbacks *callbacks = get_table(TABLE_OF_CALLBACKS);
    if (!callbacks || callbacks->struct_size < sizeof *callbacks)
        return 0;
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) {
        Function **table;
        unsigned size;
        if (callbacks->get_module(slots[i].module, &table, &size) && slots[i].index < size && table[slots[i].index])
            *table[slots[i].index] = slots[i].function;
    }
    return 1;
}

static char library_path[4096];

char *jm_nvtx_library(void)
{
    if (jm_nvtx_request(JM_REQ_NVTX_LIBRARY, (UWord)slots, (UWord)library_path, sizeof library_path, 0))
        return library_path;
    return 0;
}
