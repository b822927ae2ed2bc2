// SPDX-License-Identifier: GPL-2.0-or-later
//
// NVTX calls as regions and marks. Texts are read from the program, and handles of domains and registered strings are
// numbers that NVTX only passes back; see nvtx.h.

#include "requests/nvtx.h"
#include "base/client_memory.h"
#include "base/libc.h"
#include "base/options.h"
#include "base/text.h"
#include "events/region.h"
#include "host/host.h"

#include "preload/protocol.h"

#define MAX_TEXT    1024
#define MAX_DOMAINS 1024

static HChar *domain_names[MAX_DOMAINS + 1]; // by handle; 0 is the default domain, which has no name
static UWord n_domains;

static UWord domain_handle(const HChar *name)
{
    for (UWord i = 1; i <= n_domains; i++)
        if (jm_text_equal(domain_names[i], name))
            return i;
    if (n_domains == MAX_DOMAINS)
        return MAX_DOMAINS;
    domain_names[++n_domains] = jm_text_copy("jm.nvtx", name);
    return n_domains;
}

// Prefix a text with its domain's name, as reports show it. Valid until the next call.
static const HChar *in_domain(UWord domain, const HChar *text)
{
    static HChar whole[2 * MAX_TEXT + 2];
    if (domain == 0 || domain > n_domains)
        return text;
    jm_format(whole, sizeof whole, "%s: %s", domain_names[domain], text);
    return whole;
}

// nvtxEventAttributes_t (nvToolsExt.h): the message's type is at 32 and the message at 40 in all versions.
enum { MESSAGE_TYPE = 32, MESSAGE = 40 };
enum { MESSAGE_ASCII = 1, MESSAGE_REGISTERED = 3 }; // 2: of wchar_t, which no program on Linux uses

// Find the name of an event's region. A registered string is such a name already; other texts are read.
static RegionName event_name(UWord domain, UWord form, Addr argument)
{
    HChar text[MAX_TEXT] = "";
    Bool is_known;
    if (form == JM_NVTX_ATTRIBUTES) {
        UInt type = 0;
        UWord message = 0;
        is_known = jm_read_uint(argument + MESSAGE_TYPE, &type) && jm_read_word(argument + MESSAGE, &message);
        if (is_known && type == MESSAGE_REGISTERED && jm_region_is_name(message))
            return (RegionName)message;
        is_known = is_known && type == MESSAGE_ASCII && jm_read_string(message, text, MAX_TEXT);
    } else {
        is_known = jm_read_string(argument, text, MAX_TEXT);
    }
    return jm_region_name(in_domain(domain, is_known ? text : "(no message)"));
}

// Tags of regions: odd for a domain's stack of ranges, even for a single range.
static ULong stack_tag(UWord domain)
{
    return (ULong)domain << 1 | 1;
}

static ULong range_tag(UWord range)
{
    return (ULong)range << 1;
}

// The number of a range contains the thread that began it, since any thread may end it.
enum { THREAD_BITS = 16 };
static UWord n_ranges;

UWord jm_nvtx_call(ThreadId tid, UWord call, UWord domain, UWord form, UWord argument)
{
    HChar text[MAX_TEXT];
    UWord range, beginner;
    switch (call) {
    case JM_NVTX_MARK:
        jm_region_mark(event_name(domain, form, argument));
        return 0;
    case JM_NVTX_PUSH:
        jm_region_begin(tid, event_name(domain, form, argument), stack_tag(domain));
        return jm_region_depth(tid, stack_tag(domain)) - 1; // levels count from 0
    case JM_NVTX_POP:
        jm_region_end_tagged(tid, stack_tag(domain));
        return jm_region_depth(tid, stack_tag(domain));
    case JM_NVTX_START:
        range = ++n_ranges << THREAD_BITS | tid;
        jm_region_begin(tid, event_name(domain, form, argument), range_tag(range));
        return range;
    case JM_NVTX_END:
        beginner = argument & ((1u << THREAD_BITS) - 1);
        if (beginner < host_n_threads())
            jm_region_end_tagged(beginner, range_tag(argument));
        return 0;
    case JM_NVTX_CREATE_DOMAIN:
        return jm_read_string(argument, text, MAX_TEXT) ? domain_handle(text) : 0;
    case JM_NVTX_REGISTER_STRING:
        return jm_read_string(argument, text, MAX_TEXT) ? jm_region_name(in_domain(domain, text)) : 0;
    default:
        return 0;
    }
}

Bool jm_nvtx_library_path(Addr inside, HChar *to, SizeT size)
{
    Mapping library;
    const HChar *path = host_mapping_at(inside, &library) ? library.path : NULL;
    if (!jm_options.nvtx || !path || strlen(path) >= size)
        return False;
    strcpy(to, path);
    return True;
}
