// SPDX-License-Identifier: GPL-2.0-or-later
//
// Load addresses are assigned in sequence in one zone. It is out of the way of allocations from below, starts near
// enough to these for jumps of 2 GB, and ends before the range that CUDA's driver reserves (from 8 GB on). The table of
// addresses is a file in the cache's directory, for all programs: a process that maps an unknown object file appends a
// row. Rows are read once, when the first file is mapped. Of two that overlap the first counts, and the other file gets
// another address in the next run.
//
// An address is a hint: if it is occupied, the core searches a hole as usual, and mappings at an address that the
// program requests are not changed. A file at another address only loses its kept translations.

#include "host/valgrind/places.h"
#include "base/checksum.h"
#include "base/options.h"
#include "base/stats.h"
#include "host/valgrind/cache_directory.h"
#include "host/valgrind/debug_info.h"

#define NAME       "places"
#define ZONE_START 0x60000000ULL
#define ZONE_END   0x200000000ULL
#define ALIGNMENT  0x10000ULL // of object files on arm64
#define MAX_PLACES 4096

// asm-generic/mman.h
#define MAP_OF_NO_CONCERN                                                                                              \
    (VKI_MAP_FIXED | VKI_MAP_SHARED | 0x40 /* 32BIT */ | 0x40000 /* HUGETLB */ | 0x100 /* GROWSDOWN */)

typedef struct {
    ULong file; // checksum of the file's inode, size and time, and of the mapping's length
    ULong start;
    ULong n_bytes;
    ULong checksum; // covers the fields above
} Place;

static enum { NOT_READ, READ, NONE } table;
static XArray *places; // of Place
static Int file = -1;
static Bool may_write;
static ULong zone_used = ZONE_START; // end of the used part
static Bool is_full;
static UInt n_placed, n_elsewhere;

// ---- the table -----------------------------------------------------------------------------------------------

static ULong checksum_of(const Place *place)
{
    return jm_checksum(place, offsetof(Place, checksum), sizeof *place);
}

static const Place *place_of(ULong file_id)
{
    for (Word i = 0; i < VG_(sizeXA)(places); i++) {
        const Place *place = VG_(indexXA)(places, i);
        if (place->file == file_id)
            return place;
    }
    return NULL;
}

static Bool is_free(const Place *wanted)
{
    for (Word i = 0; i < VG_(sizeXA)(places); i++) {
        const Place *place = VG_(indexXA)(places, i);
        if (wanted->start < place->start + place->n_bytes && place->start < wanted->start + wanted->n_bytes)
            return False;
    }
    return True;
}

static void add(const Place *place)
{
    VG_(addToXA)(places, place);
    if (place->start + place->n_bytes > zone_used)
        zone_used = place->start + place->n_bytes;
}

static void read_places(void)
{
    Place rows[128];
    Long n;
    for (ULong at = 0; (n = jm_cache_read(file, rows, sizeof rows, at)) >= (Long)sizeof *rows; at += sizeof rows)
        for (UInt i = 0; i < n / sizeof *rows; i++) {
            const Place *row = &rows[i];
            if (row->checksum == checksum_of(row) && row->start >= ZONE_START && row->n_bytes < ZONE_END &&
                row->start + row->n_bytes <= ZONE_END && row->start % ALIGNMENT == 0 && !place_of(row->file) &&
                is_free(row))
                add(row);
        }
}

// Open the table. Restart it if it has too many rows or half of one.
static Bool open_table(void)
{
    if (table != NOT_READ)
        return table == READ;
    table = NONE;
    if (!jm_options.code_cache)
        return False;
    const Int directory = jm_cache_directory();
    if (directory < 0)
        return False;
    places = VG_(newXA)(VG_(malloc), "jm.code", VG_(free), sizeof(Place));
    for (UInt attempt = 0; attempt < 2 && table == NONE; attempt++) {
        struct vg_stat st;
        file = jm_cache_directory_file(directory, NAME, VKI_O_CREAT | VKI_O_RDWR | VKI_O_APPEND);
        may_write = file >= 0;
        if (!may_write)
            file = jm_cache_directory_file(directory, NAME, VKI_O_RDONLY);
        if (file < 0 || VG_(fstat)(file, &st) != 0)
            break;
        read_places();
        if (st.size <= (Long)(MAX_PLACES * sizeof(Place)) && st.size % sizeof(Place) == 0) {
            table = READ;
            break;
        }
        jm_cache_remove(directory, NAME);
        VG_(close)(file);
        VG_(dropTailXA)(places, VG_(sizeXA)(places));
        zone_used = ZONE_START;
    }
    return table == READ;
}

// ---- files ---------------------------------------------------------------------------------------------------

// Identify an object file across runs, as long as it is not written to; 0 if it is another kind of file.
static ULong id_of_object(Int fd, SizeT n_bytes)
{
    struct vg_stat st;
    UChar magic[4];
    if (VG_(fstat)(fd, &st) != 0 || !VKI_S_ISREG(st.mode) ||
        jm_cache_read(fd, magic, sizeof magic, 0) != sizeof magic || VG_(memcmp)(magic, "\177ELF", sizeof magic) != 0)
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
    if (fd < 0 || offset != 0 || !open_table())
        return 0;
    return id_of_object(fd, n_bytes);
}

// ---- wrapper of the core's mmap ------------------------------------------------------------------------------

SysRes __real_vgModuleLocal_generic_PRE_sys_mmap(ThreadId tid, UWord start, UWord n_bytes, UWord protection,
                                                 UWord flags, UWord fd, Off64T offset);
SysRes __wrap_vgModuleLocal_generic_PRE_sys_mmap(ThreadId tid, UWord start, UWord n_bytes, UWord protection,
                                                 UWord flags, UWord fd, Off64T offset);

static Bool choose(Place *place)
{
    const ULong start = VG_ROUNDUP(zone_used, ALIGNMENT);
    is_full = start + place->n_bytes > ZONE_END;
    if (is_full)
        return False;
    place->start = start;
    place->checksum = checksum_of(place);
    return True;
}

SysRes __wrap_vgModuleLocal_generic_PRE_sys_mmap(ThreadId tid, UWord start, UWord n_bytes, UWord protection,
                                                 UWord flags, UWord fd, Off64T offset)
{
    const ULong id = start == 0 ? object_to_be_mapped(n_bytes, protection, flags, (Int)fd, offset) : 0;
    const Place *known = id ? place_of(id) : NULL;
    Place chosen = {.file = id, .n_bytes = n_bytes};
    const Bool is_new = id && !known && may_write && choose(&chosen);
    if (known)
        chosen.start = known->start;
    SysRes res = __real_vgModuleLocal_generic_PRE_sys_mmap(tid, known || is_new ? chosen.start : start, n_bytes,
                                                           protection, flags, fd, offset);
    jm_debug_info_after_map();
    if (!known && !is_new)
        return res;
    if (sr_isError(res) || sr_Res(res) != chosen.start) {
        n_elsewhere++;
        if (is_new)
            zone_used = chosen.start + n_bytes; // occupied: it may be in the way of the next file, too
        return res;
    }
    n_placed++;
    if (is_new) {
        const CachePiece pieces[2] = {{&chosen, sizeof chosen}, {&chosen, 0}};
        ULong at;
        add(&chosen);
        jm_cache_append(file, pieces, &at);
    }
    return res;
}

void jm_places_stats(void)
{
    if (table == READ)
        VG_(dmsg)(" jmassif: object files: %u at their places, %u elsewhere\n", n_placed, n_elsewhere);
    jm_stats_row("jm.code", "places of object files", places ? VG_(sizeXA)(places) : 0,
                 places ? VG_(sizeXA)(places) * sizeof(Place) : 0);
}

// Restart a full zone in the next run: it has addresses of files that no longer exist.
void jm_places_end(void)
{
    if (is_full)
        jm_cache_remove(jm_cache_directory(), NAME);
    if (file >= 0)
        VG_(close)(file);
    file = -1;
    table = NONE;
}
