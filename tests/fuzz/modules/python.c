// SPDX-License-Identifier: GPL-2.0-or-later
//
// Tables of a Python interpreter in memory that says nothing true: the offsets that it publishes, and tables of lines.

#include "base/client_memory.h"
#include "shim.h"
#include "python/layout.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    if (n < 16 || n > SEGMENT_BYTES)
        return 0;
    shim_seed(bytes, n);
    unsigned char *at = shim_segment(bytes, n, 0);
    jm_forget_readable();
    for (UInt i = 0; i < 8; i++) {
        const PythonLayout *row = jm_python_layout(3, shim_number() % 20);
        PythonLayout layout = row ? *row : (PythonLayout){.version = 0x30d};
        jm_python_apply_debug_offsets(&layout, (Addr)at + (i ? shim_number() % n : 0));
        size_t from = shim_number() % n;
        // To the last byte, behind which nothing can be read.
        unsigned char *table = shim_segment(bytes + from, n - from, 0);
        size_t behind = (4096 - (n - from) % 4096) % 4096;
        __builtin_memmove(table + behind, table, n - from);
        LinePlace place = {0};
        jm_python_line((LineTable)(i % 3), table + behind, n - from, (Int)shim_number(), (Int)shim_number(), &place);
        jm_python_line((LineTable)(i % 3), table + behind, n - from, 10, (Int)(shim_number() % 4096), &place);
        shim_forget();
        at = shim_segment(bytes, n, 0);
    }
    shim_forget();
    return 0;
}
