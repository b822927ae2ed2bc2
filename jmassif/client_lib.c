// SPDX-License-Identifier: GPL-2.0-or-later
//
// libjmassif.so: the client requests of jmassif.h as functions, for languages that cannot use C macros. In Python:
//
//     jm = ctypes.CDLL("libjmassif.so")
//     jm.jmassif_mark(b"epoch 1")
//
// Outside Valgrind they do nothing.

#include "jmassif.h"

void jmassif_snapshot(void);
void jmassif_mark(const char *text);
void jmassif_region_begin(const char *text);
void jmassif_region_end(const char *text);

void jmassif_snapshot(void)
{
    JMASSIF_SNAPSHOT();
}
void jmassif_mark(const char *text)
{
    JMASSIF_MARK(text);
}
void jmassif_region_begin(const char *text)
{
    JMASSIF_REGION_BEGIN(text);
}
void jmassif_region_end(const char *text)
{
    JMASSIF_REGION_END(text);
}
