// SPDX-License-Identifier: GPL-2.0-or-later
//
// Modules that are tested without the recorder get their memory from the C library, and exit if an assertion fails.

#pragma once

#include <stdio.h>
#include <stdlib.h>

#include "host/host.h"

void *host_alloc(const HChar *name, SizeT bytes)
{
    return malloc(bytes);
}
void *host_alloc_zeroed(const HChar *name, SizeT n, SizeT bytes)
{
    return calloc(n, bytes);
}
void *host_realloc(const HChar *name, void *p, SizeT bytes)
{
    return realloc(p, bytes);
}
void host_free(void *p)
{
    free(p);
}
void host_fail(const HChar *condition, const HChar *file, UInt line, const HChar *function)
{
    fprintf(stderr, "%s:%u: %s: %s\n", file, line, function, condition);
    exit(1);
}
