// SPDX-License-Identifier: GPL-2.0-or-later
//
// jmassif/python/layout.c as a library for its tests. The memory that it reads is this process' own, or rather the one
// piece of it that the test says.

#include <sys/mman.h>

#include "python/layout.c"

static Addr image_start, image_end;

void set_image(const void *start, SizeT bytes)
{
    image_start = (Addr)start;
    image_end = image_start + bytes;
}

ReadableSegment jm_readable[JM_N_READABLE]; // empty, so each read asks
Bool jm_reads_copies;                       // never: no other thread is there

Bool jm_read_copied(Addr address, void *to, SizeT bytes)
{
    return False;
}

Bool jm_is_newly_readable(Addr address, SizeT bytes)
{
    return address >= image_start && address + bytes <= image_end;
}

Bool jm_read_bytes(Addr address, void *to, SizeT bytes)
{
    if (!jm_is_newly_readable(address, bytes))
        return False;
    memcpy(to, (const void *)address, bytes);
    return True;
}

Bool copy_layout(UInt major, UInt minor, PythonLayout *to)
{
    const PythonLayout *known = jm_python_layout(major, minor);
    if (known)
        *to = *known;
    return known != NULL;
}

// A table that ends where the next page cannot be read. In the same table as before the search goes on; it must find
// what one from the start finds, else the result is the largest number.
UInt line_of_guarded_table(LineTable kind, const UChar *table, SizeT n, Int first, Int at)
{
    static UChar *end;
    if (!end) {
        SizeT most = 1 << 20, guard = 1 << 16; // a multiple of every page size
        end = mmap(NULL, most + guard, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        end += most;
        mprotect(end, guard, PROT_NONE);
    }
    static LinePlace place;
    static SizeT n_before;
    static LineTable kind_before;
    if (n != n_before || kind != kind_before || memcmp(end - n, table, n) != 0)
        place = (LinePlace){0};
    n_before = n;
    kind_before = kind;
    memcpy(end - n, table, n);
    const UInt line = jm_python_line(kind, end - n, n, first, at, &place);
    return line == jm_python_line(kind, end - n, n, first, at, &(LinePlace){0}) ? line : ~0u;
}
