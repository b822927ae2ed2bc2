// SPDX-License-Identifier: GPL-2.0-or-later
//
// host/host.h by Valgrind's core: the recorder's memory, the program's mappings, the process, and output.

#include "host/host.h"
#include "base/kernel.h"
#include "base/text.h"
#include "host/valgrind/compat.h"

#include <asm/resource.h>

// ---- the recorder's memory -----------------------------------------------------------------------------------

void *host_alloc(const HChar *name, SizeT bytes)
{
    return VG_(malloc)(name, bytes);
}

void *host_alloc_zeroed(const HChar *name, SizeT n, SizeT each)
{
    return VG_(calloc)(name, n, each);
}

void *host_realloc(const HChar *name, void *p, SizeT bytes)
{
    return VG_(realloc)(name, p, bytes);
}

void host_free(void *p)
{
    VG_(free)(p);
}

// ---- mappings ------------------------------------------------------------------------------------------------

#if !defined(VGA_amd64)
UWord host_page_bytes; // set by tool.c
#endif

Bool host_mapping_at(Addr address, Mapping *found)
{
    static const struct {
        MappedAs as;
        Bool is_programs;
    } kinds[] = {
        [SkAnonC] = {MAPPED_ANONYMOUS, True},    [SkAnonV] = {MAPPED_ANONYMOUS, False},
        [SkFileC] = {MAPPED_FILE, True},         [SkFileV] = {MAPPED_FILE, False},
        [SkShmC] = {MAPPED_SHARED_MEMORY, True}, [SkResvn] = {MAPPED_NOTHING, False},
    };
    const NSegment *segment = VG_(am_find_nsegment)(address);
    if (!segment) {
        *found = (Mapping){.as = MAPPED_NOTHING};
        return False;
    }
    *found = (Mapping){
        .start = segment->start,
        .end = segment->end + 1,
        .as = kinds[segment->kind].as,
        .is_programs = kinds[segment->kind].is_programs,
        .is_readable = segment->hasR,
        .is_writable = segment->hasW,
        .is_executable = segment->hasX,
        .is_heap = segment->isCH,
        .has_code = segment->hasT,
        .device = segment->dev,
        .inode = segment->ino,
        .offset = segment->offset,
        .path = segment->kind == SkFileC ? VG_(am_get_filename)(segment) : NULL,
    };
    return found->as != MAPPED_NOTHING;
}

const HChar *host_unseen_loader(void)
{
    return NULL;
}

Addr host_own_memory(void)
{
    static Addr start;
    if (start)
        return start;
    const NSegment *tool = VG_(am_find_nsegment)((Addr)&start);
    Addr starts[256];
    Int n = VG_(am_get_segment_starts)(SkAnonV, starts, sizeof starts / sizeof *starts);
    start = ~(Addr)0;
    for (Int i = 0; i < n; i++)
        if (tool && starts[i] > tool->end + HOST_LONGEST_STACK && starts[i] < start)
            start = starts[i];
    return start;
}

// The core's own allocator maps so too: exported by libcoregrind in every release since 3.8.
extern SysRes VG_(am_mmap_client_heap)(SizeT length, Int prot);

// Same protection as the core's regions, so that the kernel merges neighbours into one mapping.
Addr host_map_heap(SizeT bytes)
{
    SysRes mapped = VG_(am_mmap_client_heap)(bytes, VKI_PROT_READ | VKI_PROT_WRITE | VKI_PROT_EXEC);
    return sr_isError(mapped) ? 0 : sr_Res(mapped);
}

Bool host_is_readable(Addr address, SizeT bytes)
{
    return VG_(am_is_valid_for_client)(address, bytes, VKI_PROT_READ);
}

Bool host_is_writable(Addr address, SizeT bytes)
{
    return VG_(am_is_valid_for_client)(address, bytes, VKI_PROT_READ | VKI_PROT_WRITE);
}

// ---- the process ---------------------------------------------------------------------------------------------

UInt host_n_arguments(void)
{
    return VG_(sizeXA)(VG_(args_for_client));
}

const HChar *host_argument(UInt i)
{
    return *(HChar **)VG_(indexXA)(VG_(args_for_client), i);
}

const HChar *host_program(void)
{
    return VG_(args_the_exename);
}

const HChar *host_environment(const HChar *name)
{
    return VG_(getenv)(name);
}

HChar **host_program_environment(void)
{
    return VG_(client_envp);
}

const HChar *host_start_directory(void)
{
    return VG_(get_startup_wd)();
}

const HChar *host_name(void)
{
    return "valgrind";
}

const HChar *host_version(void)
{
    return JM_VALGRIND_VERSION;
}

const HChar *host_launcher(void)
{
    return VG_(name_of_launcher) ? VG_(name_of_launcher) : "";
}

HChar *host_expand_path(const HChar *option, const HChar *path)
{
    return VG_(expand_file_name)(option, path);
}

// Descriptors above its limit that the core reserves for itself (m_main.c).
#define CORES_OWN 12

// The core refuses the program's descriptors from its own limit on, and has its own there. From then on the program may
// close these.
void host_allow_descriptor(UWord fd)
{
    static Bool has_failed;
    ProcessLimit limit;
    if (fd < (UWord)VG_(fd_hard_limit) || has_failed || !jm_limit(RLIMIT_NOFILE, &limit))
        return;
    // Not more, since a program may close every descriptor up to the limit, one by one.
    limit.soft = limit.hard < 1 << 16 ? limit.hard : 1 << 16;
    has_failed = fd + CORES_OWN >= limit.soft || !jm_limit_set(RLIMIT_NOFILE, &limit);
    if (!has_failed)
        VG_(fd_hard_limit) = limit.soft - CORES_OWN;
    else
        jm_message(
            "jmassif: this board gives buffers the descriptors 1024 and up, and the limit of open files is too low "
            "for\njmassif: Valgrind to let the program map and close them; run first:  ulimit -n 65536\n");
}

Int host_keep_descriptor(Int fd)
{
    return VG_(safe_fd)(fd);
}

void host_inherit_option(const HChar *option)
{
    VG_(addToXA)(VG_(args_for_valgrind), &option);
}

// ---- output --------------------------------------------------------------------------------------------------

void host_print(HostOutput kind, const HChar *text)
{
    switch (kind) {
    case HOST_NOTE:
        if (VG_(clo_verbosity) == 0)
            break;
        // fall through
    case HOST_WARNING:
        VG_(umsg)("%s", text);
        break;
    case HOST_USAGE:
        VG_(printf)("%s", text);
        break;
    case HOST_MONITOR:
        VG_(gdb_printf)("%s", text);
        break;
    }
}

void host_usage_error(const HChar *text)
{
    VG_(fmsg)("jmassif: %s\n", text);
    VG_(exit)(2);
}

void host_bad_option(const HChar *option, const HChar *text)
{
    VG_(fmsg_bad_option)(option, "%s\n", text);
    VG_(exit)(2); // not reached, but older headers do not say so
}

void host_fail(const HChar *condition, const HChar *file, UInt line, const HChar *function)
{
    VG_(assert_fail)(False, condition, file, line, function, "");
}
