// SPDX-License-Identifier: GPL-2.0-or-later
//
// Names of code (host/host.h, "symbols"), the same that Valgrind's core gives. Source lines and inlined calls are left
// to readers of the trace, who get the addresses.

#include "base/libc.h"
#include "base/text.h"
#include "host/host.h"
#include "host/native/functions.h"
#include "host/native/stubs.h"

Bool host_is_below_main(const HChar *function)
{
    static const HChar *const exact[] = {"(below main)", "__libc_start_main", "__libc_start_call_main",
                                         "generic_start_main", "_start"};
    for (UInt i = 0; i < sizeof exact / sizeof *exact; i++)
        if (jm_text_equal(function, exact[i]))
            return True;
    // A compiler adds ".isra.0" and its kin.
    return strncmp(function, "__libc_start_main.", 18) == 0 || strncmp(function, "generic_start_main.", 19) == 0;
}

// The core's name of a function, with its symbol's version; NULL if there is none.
static const HChar *function_at(Addr ip, Bool *is_entry)
{
    Mapping code;
    const HChar *name = jm_native_stub_name(ip);
    if (!name)
        name = host_mapping_at(ip, &code) ? jm_function_at(&code, ip, is_entry) : NULL;
    return name && host_is_below_main(name) ? "(below main)" : name;
}

void host_frames_at(Addr ip, Bool with_inlined, void (*add)(void *context, const HostFrame *frame), void *context)
{
    Bool is_entry;
    const HChar *name = function_at(ip, &is_entry);
    // The symbol's version (dlopen@@GLIBC_2.34) is not part of the function's name.
    const HChar *version = name ? strchr(name, '@') : NULL;
    HChar *cut = version && version != name ? jm_text_copy("jm.symbol", name) : NULL;
    if (cut)
        cut[version - name] = 0;
    HostFrame frame = {.function = cut ? cut : name};
    Mapping code;
    if (with_inlined && host_mapping_at(ip, &code))
        frame.line_address = jm_line_address(&code, ip, &frame.file_version);
    add(context, &frame);
    host_free(cut);
}

void host_object_at(Addr ip, const HChar **path, const HChar **soname)
{
    Mapping code;
    ObjectFile file;
    *path = *soname = NULL;
    if (!host_mapping_at(ip, &code) || code.as != MAPPED_FILE)
        return;
    *path = code.path;
    if (jm_object_file(&code, False, &file) && ip >= file.text && ip < file.text_end)
        *soname = file.soname;
}

// The object is that of the mapping which holds its .text: others have parts of it only.
Bool host_knows_object(Addr start, Addr end, const HChar **soname)
{
    Mapping code;
    ObjectFile file;
    *soname = NULL;
    if (!host_mapping_at(start, &code) || !jm_object_file(&code, True, &file) || file.text < start || file.text >= end)
        return False;
    *soname = file.soname;
    return True;
}

const HChar *host_function_entry(Addr address)
{
    Bool is_entry;
    const HChar *name = function_at(address, &is_entry);
    return name && is_entry ? name : NULL;
}
