// SPDX-License-Identifier: GPL-2.0-or-later
//
// Load addresses of object files. The core gives a mapping the first hole that is large enough, so a library's address
// depends on earlier allocations; but a translation of its code holds for one address.
//
// So an object file's address is a hash of what identifies it, in a zone that is out of the way of allocations from
// below, starts near enough to these for jumps of 2 GB, and ends before the range that CUDA's driver reserves (from 8
// GB on). If another file is in the way, the next hash counts. It is a hint: if it is occupied in spite of that, the
// core searches a hole as usual, and mappings at an address that the program requests are not changed. A file at
// another address only loses its kept translations.

#include "host/valgrind/code_cache.h"
#include "base/checksum.h"
#include "base/kernel.h"
#include "base/libc.h"
#include "base/table.h"
#include "host/valgrind/cache_directory.h"
#include "host/valgrind/debug_info.h"

#define ZONE_START 0x60000000ULL
#define ZONE_END   0x200000000ULL
#define ALIGNMENT  0x10000ULL // of object files on arm64
#define MOST_TRIES 32

// asm-generic/mman.h
#define MAP_OF_NO_CONCERN                                                                                              \
    (VKI_MAP_FIXED | VKI_MAP_SHARED | 0x40 /* 32BIT */ | 0x40000 /* HUGETLB */ | 0x100 /* GROWSDOWN */)

// Identify an object file across runs, as long as it is not written to; 0 if it is another kind of file.
static ULong id_of_object(Int fd, SizeT n_bytes)
{
    struct vg_stat st;
    UChar magic[4];
    if (VG_(fstat)(fd, &st) != 0 || !VKI_S_ISREG(st.mode) ||
        jm_kernel_call(__NR_pread64, fd, (UWord)magic, sizeof magic, 0, 0) != sizeof magic ||
        memcmp(magic, "\177ELF", sizeof magic) != 0)
        return 0;
    const ULong facts[] = {st.ino, st.size, st.mtime, st.mtime_nsec, n_bytes};
    return jm_checksum(facts, sizeof facts, 0) | 1;
}

// The loader reads an object file's headers, then maps it. If the file asks for more than a page's alignment, the
// loader first reserves the range without the file, which is then the one read last.
static Int read_last = -1;

void jm_places_after_syscall(UInt number, const UWord *args, SysRes res)
{
    if (number == __NR_read)
        read_last = sr_isError(res) ? -1 : (Int)args[0];
}

static ULong object_to_be_mapped(SizeT n_bytes, UWord protection, UWord flags, Int fd, Off64T offset)
{
    if (!(flags & VKI_MAP_PRIVATE) || (flags & MAP_OF_NO_CONCERN) || n_bytes == 0 || n_bytes > ZONE_END - ZONE_START)
        return 0;
    if (flags & VKI_MAP_ANONYMOUS) {
        fd = protection == VKI_PROT_NONE ? read_last : -1;
        read_last = -1;
    }
    return fd >= 0 && offset == 0 && jm_cache_directory() >= 0 ? id_of_object(fd, n_bytes) : 0;
}

static Bool is_free(Addr start, SizeT n_bytes)
{
    Addr at = start;
    while (at < start + n_bytes && !VG_(am_find_nsegment)(at))
        at += ALIGNMENT;
    return at >= start + n_bytes && !VG_(am_find_nsegment)(start + n_bytes - 1);
}

// Choose an address for an object file; 0 leaves it to the core.
static Addr place_of(ULong id, SizeT n_bytes)
{
    for (UInt i = 0; id && i < MOST_TRIES; i++, id = jm_hash(id)) {
        const Addr start = ZONE_START + id % (ZONE_END - ZONE_START - n_bytes + 1) / ALIGNMENT * ALIGNMENT;
        if (is_free(start, n_bytes))
            return start;
    }
    return 0;
}

SysRes __real_vgModuleLocal_generic_PRE_sys_mmap(ThreadId tid, UWord start, UWord n_bytes, UWord protection,
                                                 UWord flags, UWord fd, Off64T offset);

SysRes __wrap_vgModuleLocal_generic_PRE_sys_mmap(ThreadId tid, UWord start, UWord n_bytes, UWord protection,
                                                 UWord flags, UWord fd, Off64T offset)
{
    if (start == 0)
        start = place_of(object_to_be_mapped(n_bytes, protection, flags, (Int)fd, offset), n_bytes);
    SysRes res = __real_vgModuleLocal_generic_PRE_sys_mmap(tid, start, n_bytes, protection, flags, fd, offset);
    jm_debug_info_after_map();
    return res;
}
