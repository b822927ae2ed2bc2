// SPDX-License-Identifier: GPL-2.0-or-later
//
// Names of code, from the debug information that the core has read (host/host.h, "symbols"). The core's texts hold
// until its next query, so those needed longer are copied.

#include "base/libc.h"
#include "base/text.h"
#include "host/host.h"
#include "host/valgrind/compat.h"

// Split "0xADDR: FUNCTION (FILE:LINE)" in place. The core describes inlined calls in no other form.
static Bool split_description(HChar *text, HostFrame *frame)
{
    HChar *function = strstr(text, ": ");
    HChar *open = strrchr(text, '(');
    if (!function || !open || open < function + 3)
        return False;
    frame->function = function + 2;
    open[-1] = 0;
    if (strncmp(open, "(in ", 4) == 0)
        return True; // the object's name instead of a source line
    frame->file = open + 1;
    HChar *close = strrchr(open + 1, ')');
    HChar *colon = strrchr(open + 1, ':');
    if (close)
        *close = 0;
    if (colon) {
        *colon = 0;
        frame->line = jm_text_number(colon + 1, NULL);
    }
    return True;
}

// The calls inlined at `ip`, innermost first, then the function that contains them. False if no call was inlined.
static Bool add_inlined(DiEpoch epoch, Addr ip, void (*add)(void *context, const HostFrame *frame), void *context)
{
    InlIPCursor *cursor = VG_(new_IIPC)(epoch, ip);
    if (!cursor)
        return False;
    Bool any = False, is_more = True;
    while (is_more) {
        HChar *described = jm_text_copy("jm.symbol", VG_(describe_IP)(epoch, ip, cursor));
        is_more = VG_(next_IIPC)(cursor);
        HostFrame frame = {.is_inlined = is_more};
        Bool is_split = split_description(described, &frame);
        if (is_split && (is_more || any))
            add(context, &frame);
        any = is_more || (any && is_split);
        host_free(described);
    }
    VG_(delete_IIPC)(cursor);
    return any;
}

void host_frames_at(Addr ip, Bool with_inlined, void (*add)(void *context, const HostFrame *frame), void *context)
{
    DiEpoch epoch = VG_(current_DiEpoch)();
    if (with_inlined && add_inlined(epoch, ip, add, context))
        return;
    HostFrame frame = {.line = 0};
    const HChar *text, *file, *directory;
    HChar *function = VG_(get_fnname)(epoch, ip, &text) ? jm_text_copy("jm.symbol", text) : NULL;
    // The symbol's version (dlopen@@GLIBC_2.34) is not part of the function's name.
    HChar *version = function ? strchr(function, '@') : NULL;
    if (version && version != function)
        *version = 0;
    HChar *path = NULL;
    if (VG_(get_filename_linenum)(epoch, ip, &file, &directory, &frame.line)) {
        SizeT bytes = strlen(file) + strlen(directory) + 2;
        path = host_alloc("jm.symbol", bytes);
        jm_format(path, bytes, "%s%s%s", directory, *directory ? "/" : "", file);
    }
    frame.function = function;
    frame.file = path;
    add(context, &frame);
    host_free(function);
    host_free(path);
}

void host_object_at(Addr ip, const HChar **path, const HChar **soname)
{
    DiEpoch epoch = VG_(current_DiEpoch)();
    const Bool is_known = VG_(get_objname)(epoch, ip, path);
    const DebugInfo *object = is_known ? VG_(find_DebugInfo)(epoch, ip) : NULL;
    if (!is_known)
        *path = NULL;
    *soname = object ? VG_(DebugInfo_get_soname)(object) : NULL;
}

// Search by text address: a mapping may start with the procedure linkage table, which the core does not count as text.
Bool host_knows_object(Addr start, Addr end, const HChar **soname)
{
    *soname = NULL;
    for (const DebugInfo *object = VG_(next_DebugInfo)(NULL); object; object = VG_(next_DebugInfo)(object)) {
        Addr text = VG_(DebugInfo_get_text_avma)(object);
        if (text < start || text >= end)
            continue;
        *soname = VG_(DebugInfo_get_soname)(object);
        if (*soname && jm_text_equal(*soname, "NONE")) // the core's name for a missing one
            *soname = NULL;
        return True;
    }
    return False;
}

const HChar *host_function_entry(Addr address)
{
    const HChar *name;
    return VG_(get_fnname_if_entry)(VG_(current_DiEpoch)(), address, &name) ? name : NULL;
}

// The core renames start-up functions that it knows by their full names; VG_(get_fnname_kind) also knows those without
// their version.
Bool host_is_below_main(const HChar *function)
{
    return jm_text_equal(function, "(below main)") || VG_(get_fnname_kind)(function) == Vg_FnNameBelowMain;
}
