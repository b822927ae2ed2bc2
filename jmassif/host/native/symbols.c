// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/libc.h"
#include "host/host.h"

void host_frames_at(Addr ip, Bool with_inlined, void (*add)(void *context, const HostFrame *frame), void *context)
{
    HostFrame frame = {.line = 0};
    add(context, &frame);
}

void host_object_at(Addr ip, const HChar **path, const HChar **soname)
{
    Mapping m;
    *path = *soname = NULL;
    if (host_mapping_at(ip, &m))
        *path = m.path;
}

Bool host_knows_object(Addr start, Addr end, const HChar **soname)
{
    *soname = NULL;
    return True;
}

const HChar *host_function_entry(Addr address)
{
    return NULL;
}

Bool host_is_below_main(const HChar *function)
{
    return strcmp(function, "__libc_start_call_main") == 0;
}
