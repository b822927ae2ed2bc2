// SPDX-License-Identifier: GPL-2.0-or-later
//
// With --low-footprint symbol names stay in their files. The core copies the name of every symbol of an object file,
// though stacks show few: 33 MB for PyTorch and the libraries it loads. It reads a symbol table from the first to the
// last symbol, and requests storage for each name in turn; so the table is followed here in the mapped file, and the
// answer is the name's address there. The kernel keeps the pages that are accessed, and drops them when it needs
// memory. A name that is not found in turn is copied as usual. The linker leads the core's calls here (--wrap).

#include "host/valgrind/debug_info.h"

#include "base/array.h"
#include "base/kernel.h"
#include "base/options.h"

#include <elf.h>
#include <fcntl.h>

#define MOST_SECTIONS 4096
#define MOST_LOOKED   2048 // symbols that the core may have skipped before the next that it takes
#define MOST_MISSES   64   // consecutive names of another file, which the core is reading then

// Functions that the core declares in headers outside of the tools' interface, unchanged since 3.10.
SysRes VG_(am_mmap_file_float_valgrind)(SizeT bytes, UInt protection, Int fd, Off64T offset);
SysRes VG_(am_munmap_valgrind)(Addr start, SizeT bytes);

typedef struct {
    Addr start; // whole pages
    SizeT bytes;
    const void *part; // the requested section, in these pages
} Mapping;

typedef struct {
    Mapping symbols; // until the core has read them
    Mapping names;   // for good: the core keeps pointers into them
    UInt n_symbols;
    SizeT names_bytes;
    UInt next;
} SymbolTable;

// Mapped names per file, used again when the file is loaded again.
typedef struct {
    ULong of[6]; // identifies the file, and the section in it
    Mapping names;
} KeptNames;

static Array kept = JM_ARRAY("jm.names", KeptNames);

static struct {
    const DebugInfo *info; // of the object file that the core is reading
    SymbolTable tables[2];
    UInt n_tables;
    UInt table; // index of the table that the core is reading
    UInt n_misses;
} file;

static Bool map(Int fd, const Elf64_Shdr *section, Mapping *mapping)
{
    ULong before = section->sh_offset % VKI_PAGE_SIZE;
    SysRes mapped = VG_(am_mmap_file_float_valgrind)(before + section->sh_size, VKI_PROT_READ, fd,
                                                     (Off64T)(section->sh_offset - before));
    if (sr_isError(mapped))
        return False;
    mapping->start = sr_Res(mapped);
    mapping->bytes = VG_PGROUNDUP(before + section->sh_size);
    mapping->part = (const void *)(mapping->start + before);
    return True;
}

static Bool lies_in(const Elf64_Shdr *section, ULong file_bytes)
{
    return section->sh_offset <= file_bytes && section->sh_size <= file_bytes - section->sh_offset;
}

static Bool map_names(Int fd, const struct vg_stat *of, const Elf64_Shdr *section, Mapping *mapping)
{
    KeptNames names = {.of = {of->dev, of->ino, of->size, of->mtime, of->mtime_nsec, section->sh_offset}};
    const KeptNames *known = jm_array_find(&kept, &names, sizeof names.of);
    if (!known && map(fd, section, &names.names))
        known = jm_array_at(&kept, jm_array_add(&kept, &names));
    if (known)
        *mapping = known->names;
    return known != NULL;
}

static void add_table(Int fd, const struct vg_stat *of, const Elf64_Shdr *symbols, const Elf64_Shdr *names)
{
    SymbolTable *table = &file.tables[file.n_tables];
    if (names->sh_size == 0 || !lies_in(symbols, of->size) || !lies_in(names, of->size))
        return;
    if (!map_names(fd, of, names, &table->names) || ((const HChar *)table->names.part)[names->sh_size - 1] != 0)
        return;
    if (!map(fd, symbols, &table->symbols))
        return;
    table->n_symbols = symbols->sh_size / sizeof(Elf64_Sym);
    table->names_bytes = names->sh_size;
    table->next = 0;
    file.n_tables++;
}

static void add_tables(Int fd)
{
    struct vg_stat of;
    Elf64_Ehdr header;
    if (VG_(fstat)(fd, &of) != 0 || jm_read_at(fd, &header, sizeof header, 0) != sizeof header ||
        VG_(memcmp)(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shnum > MOST_SECTIONS)
        return;
    static const UInt in_the_cores_order[] = {SHT_SYMTAB, SHT_DYNSYM};
    for (UInt kind = 0; kind < 2; kind++)
        for (UInt i = 0; i < header.e_shnum; i++) {
            Elf64_Shdr symbols, names;
            if (jm_read_at(fd, &symbols, sizeof symbols, header.e_shoff + i * sizeof symbols) == sizeof symbols &&
                symbols.sh_type == in_the_cores_order[kind] && symbols.sh_link < header.e_shnum &&
                file.n_tables <= kind &&
                jm_read_at(fd, &names, sizeof names, header.e_shoff + symbols.sh_link * sizeof names) == sizeof names)
                add_table(fd, &of, &symbols, &names);
        }
}

// Unmap the symbols and release the names' pages, after the core has read the tables and matched each name with
// functions to replace.
static void let_go(void)
{
    for (UInt i = 0; i < file.n_tables; i++) {
        VG_(am_munmap_valgrind)(file.tables[i].symbols.start, file.tables[i].symbols.bytes);
        jm_kernel_let_go(file.tables[i].names.start, file.tables[i].names.bytes);
    }
    file.n_tables = 0;
}

static void begin(const DebugInfo *info)
{
    let_go();
    file.info = info;
    file.table = file.n_misses = 0;
    const HChar *path = VG_(DebugInfo_get_filename)(info);
    const Int fd = path ? jm_open(path, O_RDONLY, 0) : -1;
    if (fd < 0)
        return;
    add_tables(fd);
    jm_close(fd);
}

// Search a name from the next symbol on, as far as the core may have skipped some.
static const HChar *find(SymbolTable *table, const HChar *name)
{
    const Elf64_Sym *symbols = table->symbols.part;
    UInt n_looked = 0;
    for (UInt i = table->next; i < table->n_symbols && n_looked < MOST_LOOKED; i++) {
        if (symbols[i].st_shndx == SHN_UNDEF || symbols[i].st_name >= table->names_bytes)
            continue;
        const HChar *there = (const HChar *)table->names.part + symbols[i].st_name;
        if (VG_(strcmp)(there, name) == 0) {
            table->next = i + 1;
            return there;
        }
        n_looked++;
    }
    return NULL;
}

static const HChar *find_in_turn(const HChar *name)
{
    for (UInt i = file.table; i < file.n_tables; i++) {
        const HChar *there = find(&file.tables[i], name);
        if (there) {
            file.table = i;
            file.n_misses = 0;
            return there;
        }
    }
    if (++file.n_misses == MOST_MISSES)
        let_go();
    return NULL;
}

void jm_symbol_names_let_go(void)
{
    for (Word i = 0; i < jm_array_n(&kept); i++) {
        const Mapping *names = &((const KeptNames *)jm_array_at(&kept, i))->names;
        jm_kernel_let_go(names->start, names->bytes);
    }
}

const HChar *__real_vgModuleLocal_addStr(DebugInfo *info, const HChar *text, Int bytes);
const HChar *__wrap_vgModuleLocal_addStr(DebugInfo *info, const HChar *text, Int bytes);

const HChar *__wrap_vgModuleLocal_addStr(DebugInfo *info, const HChar *text, Int bytes)
{
    if (jm_options.low_footprint && info != file.info)
        begin(info);
    const HChar *there = file.n_tables && bytes == -1 ? find_in_turn(text) : NULL;
    return there ? there : __real_vgModuleLocal_addStr(info, text, bytes);
}
