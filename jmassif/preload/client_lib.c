// SPDX-License-Identifier: GPL-2.0-or-later
//
// The client requests of jmassif.h as functions, for languages that cannot use C macros. libjmassif.so exports them for
// programs that link to it; outside Valgrind they do nothing. The preload library exports them too, so a program under
// jmassif can look them up by name, as the Python package does.

#include <stddef.h>

#include "jmassif.h"

#define EXPORT(name, parameters, request)                                                                              \
    void name parameters                                                                                               \
    {                                                                                                                  \
        request;                                                                                                       \
    }
EXPORT(jmassif_snapshot, (void), JMASSIF_SNAPSHOT())
EXPORT(jmassif_mark, (const char *text), JMASSIF_MARK(text))
EXPORT(jmassif_stage, (const char *text), JMASSIF_STAGE(text))
EXPORT(jmassif_usage, (size_t * bytes), JMASSIF_USAGE(bytes))
EXPORT(jmassif_region_begin, (const char *text), JMASSIF_REGION_BEGIN(text))
EXPORT(jmassif_region_end, (const char *text), JMASSIF_REGION_END(text))
EXPORT(jmassif_tensor, (const void *address, size_t n_bytes), JMASSIF_TENSOR(address, n_bytes))
EXPORT(jmassif_tensor_freed, (const void *address), JMASSIF_TENSOR_FREED(address))
