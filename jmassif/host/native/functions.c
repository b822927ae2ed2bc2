// SPDX-License-Identifier: GPL-2.0-or-later
//
// Reads object files and keeps sorted tables of their functions; see functions.h. Files are read from the disk, so that
// no page of the program's mappings becomes resident. A file that is gone or has been replaced since it was mapped
// leaves the dynamic symbols, which are mapped. Buffers are static, since the program's stacks may be small.

#include "host/native/functions.h"
#include "base/array.h"
#include "base/client_memory.h"
#include "base/kernel.h"
#include "base/libc.h"
#include "base/map.h"
#include "base/table.h"
#include "base/text.h"
#include "host/native/demangle.h"
#include "symbols/elf.h"
#include "symbols/file_pages.h"

#include <asm/unistd.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>

#define MOST_SEGMENTS 16   // loaded ones, of a file
#define MOST_CODE     4    // of them with code
#define MOST_SECTIONS 1024 // of a file
#define MOST_SYMBOLS  (16u << 20)
#define MOST_ID       32 // bytes of a build-id
#define MOST_VERSION  (16 + 2 * MOST_ID)
#define MAX_NAME      ((SizeT)1 << 20)
#define KEPT_BYTES    ((SizeT)8 << 20) // of all indexes; the newest may be larger

// A function: [start, start + bytes) above the object's first code. The name is an offset in the table's strings.
typedef struct {
    UInt start, bytes, name;
} Function;

#define NAME_IN_DYNAMIC (1u << 31)
#define NAME_IN_LIST    (1u << 30) // an index of the object's lists, for a range of several names
#define END_OF_LIST     ~0u
#define MOST_STRINGS    NAME_IN_LIST // bytes

// Symbols and their names: offsets in a file, or addresses of what is mapped.
typedef struct {
    ULong symbols, n_symbols, strings, strings_bytes;
} SymbolTable;

typedef struct {
    ULong offset, address, bytes, memory_bytes;
} Segment;

typedef struct {
    MapNode node; // by inode
    HChar *path;
    ULong device;
    FileStatus status; // of the path, when it was read; zeros if it could not be opened
    Bool is_elf;
    Bool is_mapped_only; // there is no such file any more: offsets are addresses, less `bias`
    Addr bias, header;   // only then
    HChar *soname, *debug_path;
    FileStatus debug_status;
    Bool has_lines;              // or its separate debug file has
    HChar version[MOST_VERSION]; // what tells it from another file of the same path
    UInt n_code;
    Segment code_at[MOST_CODE];
    ULong text, text_bytes, plt, plt_bytes;
    SymbolTable full, dynamic; // full: in the debug file if there is a path of it
    ULong code;                // address of the first code, as in the file
    Function *functions;       // NULL until they are needed, and once dropped
    UInt n_functions, n_lists;
    UInt *lists; // names, each list with its end
    ULong used;  // when
} Object;

static Map objects = JM_MAP("jm.native.object");
static ULong n_uses, n_builds;
static SizeT index_bytes;

// ---- reading -------------------------------------------------------------------------------------------------

// The last page that was read of the file: headers are many small records.
static struct {
    Int fd;
    ULong start;
    SizeT bytes;
    UChar at[4096];
} page;

static Bool read_whole(Int fd, void *to, SizeT bytes, ULong offset)
{
    if (bytes > sizeof page.at)
        return jm_read_at(fd, to, bytes, offset) == (Long)bytes;
    ULong before = offset - page.start;
    if (page.fd != fd || before > page.bytes || bytes > page.bytes - before) {
        Long got = jm_read_at(fd, page.at, sizeof page.at, offset);
        page.fd = fd;
        page.start = offset;
        page.bytes = jm_is_error(got) ? 0 : got;
        if (page.bytes < bytes)
            return False;
    }
    memcpy(to, page.at + (offset - page.start), bytes);
    return True;
}

// A part of a file or of what is mapped, for the time of one event.
typedef struct {
    const void *at; // NULL if it cannot be read
    Addr start;
    SizeT bytes; // of the pages; 0 if nothing is to be unmapped
} Part;

static Part part_of(Int fd, ULong offset, SizeT bytes)
{
    Part part = {NULL, 0, 0};
    if (fd < 0) {
        if (jm_is_readable(offset, bytes))
            part.at = (const void *)offset;
        return part;
    }
    ULong before = offset % HOST_PAGE_BYTES;
    Long start = jm_kernel_mmap(0, before + bytes, PROT_READ, MAP_PRIVATE, fd, offset - before);
    if (!jm_is_error(start))
        part = (Part){(const UChar *)start + before, start, before + bytes};
    return part;
}

static void release(Part part)
{
    if (part.bytes)
        jm_kernel_call(__NR_munmap, part.start, part.bytes, 0, 0, 0);
}

static Int open_file(const HChar *path, FileStatus *status)
{
    Int fd = jm_open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0);
    *status = (FileStatus){0};
    page.bytes = 0;
    if (jm_is_error(fd))
        return -1;
    if (jm_file_status(fd, status) && (status->mode & 0170000) == 0100000)
        return fd;
    jm_close(fd);
    return -1;
}

static Bool is_same_file(const FileStatus *a, const FileStatus *b)
{
    return a->dev == b->dev && a->ino == b->ino && a->size == b->size && a->modified == b->modified;
}

// ---- an object file's parts ----------------------------------------------------------------------------------

// Where its headers are read: in a file, or where it is mapped.
typedef struct {
    Int fd;     // negative: mapped
    Addr start; // of the mapped header
} Source;

static Bool read_source(Source from, ULong offset, void *to, SizeT bytes)
{
    return from.fd >= 0 ? read_whole(from.fd, to, bytes, offset) : jm_read_bytes(from.start + offset, to, bytes);
}

typedef struct {
    UInt bytes;
    UChar id[MOST_ID];
} BuildId;

// Find the note of the GNU linker in a segment of notes.
static void find_build_id(const UChar *notes, SizeT bytes, BuildId *found)
{
    SizeT at = 0;
    while (at + sizeof(Elf64_Nhdr) <= bytes) {
        Elf64_Nhdr note;
        memcpy(&note, notes + at, sizeof note);
        SizeT name = at + sizeof note, content = name + JM_ROUND_UP((SizeT)note.n_namesz, 4);
        if (content + note.n_descsz > bytes)
            return;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(notes + name, "GNU", 4) == 0 &&
            note.n_descsz <= MOST_ID) {
            found->bytes = note.n_descsz;
            memcpy(found->id, notes + content, note.n_descsz);
            return;
        }
        at = content + JM_ROUND_UP((SizeT)note.n_descsz, 4);
    }
}

#define MOST_NOTES 4096

static Bool read_header(Source from, Elf64_Ehdr *header)
{
    return read_source(from, 0, header, sizeof *header) && memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
           header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_phentsize == sizeof(Elf64_Phdr);
}

static Bool read_segment(Source from, const Elf64_Ehdr *header, UInt i, Elf64_Phdr *segment)
{
    return read_source(from, header->e_phoff + i * sizeof *segment, segment, sizeof *segment);
}

static void read_build_id(Source from, BuildId *id)
{
    Elf64_Ehdr header;
    Elf64_Phdr segment;
    id->bytes = 0;
    if (!read_header(from, &header))
        return;
    for (UInt i = 0; i < header.e_phnum && !id->bytes && read_segment(from, &header, i, &segment); i++) {
        static UChar notes[MOST_NOTES];
        // Notes are in the first pages, where a file's offset is the distance from the header in memory too.
        if (segment.p_type == PT_NOTE && segment.p_filesz <= sizeof notes &&
            read_source(from, segment.p_offset, notes, segment.p_filesz))
            find_build_id(notes, segment.p_filesz, id);
    }
}

// Loaded segments of the file that is being read.
static Segment segments[MOST_SEGMENTS];
static UInt n_segments;

// The file's offset, or the mapped address, of an address as the file has it; 0 if it is not loaded.
static ULong place_of(const Object *o, ULong address)
{
    for (UInt i = 0; i < n_segments; i++) {
        const Segment *s = &segments[i];
        if (address >= s->address && address - s->address < s->bytes)
            return o->is_mapped_only ? o->bias + address : address - s->address + s->offset;
    }
    return 0;
}

static Bool read_place(const Object *o, Int fd, ULong place, void *to, SizeT bytes)
{
    return o->is_mapped_only ? jm_read_bytes(place, to, bytes) : read_whole(fd, to, bytes, place);
}

// Copy a string of a file or of mapped memory into a buffer that grows. Holds until the next call; NULL if it is
// unreadable or too long.
static const HChar *string_at(Bool is_mapped, Int fd, ULong place)
{
    static HChar *text;
    static SizeT capacity;
    SizeT bytes = 0;
    if (!text)
        text = host_alloc("jm.native.name", capacity = 512);
    for (;;) {
        Long got = is_mapped ? (Long)jm_read_string(place, text, capacity) - 1
                             : jm_read_at(fd, text + bytes, capacity - bytes, place + bytes);
        if (is_mapped && got < 0)
            return NULL;
        if (is_mapped && strlen(text) + 1 < capacity)
            return text;
        if (!is_mapped) {
            if (jm_is_error(got) || got <= 0)
                return NULL;
            for (SizeT i = bytes; i < bytes + got; i++)
                if (!text[i])
                    return text;
            bytes += got;
        }
        if (capacity >= MAX_NAME)
            return NULL;
        if (is_mapped || bytes == capacity)
            text = host_realloc("jm.native.name", text, capacity *= 2);
    }
}

static void read_segments(Object *o, Source from, const Elf64_Ehdr *header, Elf64_Phdr *dynamic)
{
    Elf64_Phdr segment;
    dynamic->p_type = PT_NULL;
    o->code = ~0ULL;
    n_segments = 0;
    for (UInt i = 0; i < header->e_phnum && read_segment(from, header, i, &segment); i++) {
        if (segment.p_type == PT_DYNAMIC)
            *dynamic = segment;
        if (segment.p_type != PT_LOAD || n_segments == MOST_SEGMENTS)
            continue;
        Segment *s = &segments[n_segments++];
        *s = (Segment){segment.p_offset, segment.p_vaddr, segment.p_filesz, segment.p_memsz};
        if (segment.p_offset == 0)
            o->bias = from.start - segment.p_vaddr;
        if (!(segment.p_flags & PF_X) || o->n_code == MOST_CODE)
            continue;
        o->code_at[o->n_code++] = *s;
        if (HOST_PAGE_DOWN(segment.p_vaddr) < o->code)
            o->code = HOST_PAGE_DOWN(segment.p_vaddr);
    }
}

// Number of symbols by DT_HASH or DT_GNU_HASH. The loader adds the bias to the dynamic section's addresses in memory.
static UInt n_dynamic_symbols(Addr hash, Addr gnu_hash)
{
    UInt n = 0, n_buckets, first, n_words;
    if (hash && jm_read_uint(hash + 4, &n))
        return n;
    if (!gnu_hash || !jm_read_uint(gnu_hash, &n_buckets) || !jm_read_uint(gnu_hash + 4, &first) ||
        !jm_read_uint(gnu_hash + 8, &n_words))
        return 0;
    Addr buckets = gnu_hash + 16 + (Addr)n_words * 8, chains = buckets + (Addr)n_buckets * 4;
    for (UInt i = 0; i < n_buckets; i++) {
        UInt start;
        if (!jm_read_uint(buckets + (Addr)i * 4, &start))
            return 0;
        n = start > n ? start : n;
    }
    for (UInt value = 0; n >= first && n < MOST_SYMBOLS; n++)
        if (!jm_read_uint(chains + (Addr)(n - first) * 4, &value) || (value & 1))
            return n + 1;
    return n;
}

static void read_dynamic(Object *o, Source from, const Elf64_Phdr *dynamic)
{
    ULong soname = 0, strings = 0, strings_bytes = 0, symbols = 0, hash = 0, gnu_hash = 0;
    ULong start = o->is_mapped_only ? o->bias + dynamic->p_vaddr : dynamic->p_offset;
    Elf64_Dyn entry;
    for (ULong at = start; at < start + dynamic->p_filesz; at += sizeof entry) {
        if (!read_place(o, from.fd, at, &entry, sizeof entry) || entry.d_tag == DT_NULL)
            break;
        ULong value = entry.d_un.d_val;
        if (entry.d_tag == DT_SONAME)
            soname = 1 + value;
        else if (entry.d_tag == DT_STRSZ)
            strings_bytes = value;
        if (o->is_mapped_only && value >= o->bias)
            value -= o->bias;
        if (entry.d_tag == DT_STRTAB)
            strings = place_of(o, value);
        else if (entry.d_tag == DT_SYMTAB)
            symbols = place_of(o, value);
        else if (entry.d_tag == DT_HASH)
            hash = place_of(o, value);
        else if (entry.d_tag == DT_GNU_HASH)
            gnu_hash = place_of(o, value);
    }
    if (soname && strings)
        o->soname = jm_text_copy("jm.native.object", string_at(o->is_mapped_only, from.fd, strings + soname - 1));
    if (o->is_mapped_only && symbols && strings) {
        ULong n = n_dynamic_symbols(hash, gnu_hash);
        if (n <= MOST_SYMBOLS && strings_bytes <= MOST_STRINGS && jm_is_readable(symbols, n * sizeof(Elf64_Sym)))
            o->dynamic = (SymbolTable){symbols, n, strings, strings_bytes};
    }
}

static Bool lies_in(const Elf64_Shdr *section, ULong file_bytes)
{
    return section->sh_offset <= file_bytes && section->sh_size <= file_bytes - section->sh_offset;
}

static SymbolTable table_of(const Elf64_Shdr *sections, UInt n, const Elf64_Shdr *symbols, ULong file_bytes)
{
    SymbolTable none = {0};
    if (symbols->sh_link >= n)
        return none;
    const Elf64_Shdr *strings = &sections[symbols->sh_link];
    ULong n_symbols = symbols->sh_size / sizeof(Elf64_Sym);
    if (!lies_in(symbols, file_bytes) || !lies_in(strings, file_bytes) || !strings->sh_size ||
        n_symbols > MOST_SYMBOLS || strings->sh_size > MOST_STRINGS)
        return none;
    return (SymbolTable){symbols->sh_offset, n_symbols, strings->sh_offset, strings->sh_size};
}

// Read the beginning of a section's name, which may be the file's last text. False if there is none.
static Bool read_name_of(Int fd, const Elf64_Shdr *names, const Elf64_Shdr *section, HChar name[12])
{
    if (section->sh_name >= names->sh_size)
        return False;
    SizeT left = names->sh_size - section->sh_name, n = left < 12 ? left : 12;
    memset(name, 0, 12);
    Bool is_read = read_whole(fd, name, n, names->sh_offset + section->sh_name);
    name[11] = 0;
    return is_read;
}

static void read_sections(Object *o, Int fd, Bool is_debug_file)
{
    Elf64_Ehdr header;
    FileStatus status;
    if (!read_header((Source){fd, 0}, &header) || !jm_file_status(fd, &status) || !header.e_shnum ||
        header.e_shnum > MOST_SECTIONS || header.e_shstrndx >= header.e_shnum ||
        header.e_shentsize != sizeof(Elf64_Shdr))
        return;
    SizeT bytes = header.e_shnum * sizeof(Elf64_Shdr);
    Elf64_Shdr *sections = host_alloc("jm.native.object", bytes);
    if (!read_whole(fd, sections, bytes, header.e_shoff)) {
        host_free(sections);
        return;
    }
    const Elf64_Shdr *names = &sections[header.e_shstrndx];
    for (UInt i = 0; i < header.e_shnum; i++) {
        const Elf64_Shdr *s = &sections[i];
        if (s->sh_type == SHT_SYMTAB && !o->full.n_symbols)
            o->full = table_of(sections, header.e_shnum, s, status.size);
        if (s->sh_type == SHT_DYNSYM && !is_debug_file && !o->dynamic.n_symbols)
            o->dynamic = table_of(sections, header.e_shnum, s, status.size);
        HChar name[sizeof ".debug_line"];
        if (s->sh_type != SHT_PROGBITS || !read_name_of(fd, names, s, name))
            continue;
        if (jm_text_equal(name, ".debug_line")) {
            o->has_lines = True;
        } else if (is_debug_file) {
            continue;
        } else if (jm_text_equal(name, ".text")) {
            o->text = s->sh_addr;
            o->text_bytes = s->sh_size;
        } else if (jm_text_equal(name, ".plt")) {
            o->plt = s->sh_addr;
            o->plt_bytes = s->sh_size;
        }
    }
    host_free(sections);
}

// The separate debug file of a build-id, where distributions install it: for the symbols and lines that the file lacks.
static void read_debug_file(Object *o, const BuildId *id)
{
    HChar path[64 + 2 * MOST_ID];
    UInt n = jm_format(path, sizeof path, "/usr/lib/debug/.build-id/%02x/", id->id[0]);
    for (UInt i = 1; i < id->bytes; i++)
        n += jm_format(path + n, sizeof path - n, "%02x", id->id[i]);
    jm_format(path + n, sizeof path - n, ".debug");
    Int fd = open_file(path, &o->debug_status);
    if (fd < 0)
        return;
    const Bool has_symbols = o->full.n_symbols != 0;
    read_sections(o, fd, True);
    if (!has_symbols && o->full.n_symbols)
        o->debug_path = jm_text_copy("jm.native.object", path);
    jm_close(fd);
}

static void put_version(Object *o, const BuildId *id)
{
    UInt n = jm_format(o->version, MOST_VERSION, id->bytes ? "build-id " : "file %llu %llu", o->status.size,
                       o->status.modified);
    for (UInt i = 0; i < id->bytes; i++)
        n += jm_format(o->version + n, MOST_VERSION - n, "%02x", id->id[i]);
}

// Read all but the symbols. False if the file is not the one that is mapped there, or cannot be opened.
static Bool read_file(Object *o, Addr header_there, ULong inode)
{
    Int fd = open_file(o->path, &o->status);
    if (fd < 0)
        return False;
    Source file = {fd, 0}, mapped = {-1, header_there};
    BuildId here, there = {0};
    read_build_id(file, &here);
    if (header_there)
        read_build_id(mapped, &there);
    Bool is_same = here.bytes && there.bytes ? here.bytes == there.bytes && memcmp(here.id, there.id, here.bytes) == 0
                                             : o->status.ino == inode;
    Elf64_Ehdr header;
    if (is_same && read_header(file, &header)) {
        Elf64_Phdr dynamic;
        o->is_elf = True;
        read_segments(o, file, &header, &dynamic);
        if (dynamic.p_type == PT_DYNAMIC)
            read_dynamic(o, file, &dynamic);
        read_sections(o, fd, False);
        if ((!o->full.n_symbols || !o->has_lines) && here.bytes)
            read_debug_file(o, &here);
        put_version(o, &here);
    }
    jm_close(fd);
    return is_same;
}

static void read_mapped(Object *o, Addr header_there)
{
    Source mapped = {-1, header_there};
    Elf64_Ehdr header;
    Elf64_Phdr dynamic;
    o->is_mapped_only = True;
    o->header = header_there;
    if (!header_there || !read_header(mapped, &header))
        return;
    o->is_elf = True;
    read_segments(o, mapped, &header, &dynamic);
    if (dynamic.p_type == PT_DYNAMIC)
        read_dynamic(o, mapped, &dynamic);
}

// ---- functions -----------------------------------------------------------------------------------------------

// The core's choice between names of the same code (preferName): the shorter without its version, then one with a
// version, then by alphabet.
static SizeT length_without_version(const HChar *name, Bool *has_version)
{
    const HChar *version = strchr(name, '@');
    *has_version = version != NULL;
    return version ? (SizeT)(version - name) : strlen(name);
}

static Bool is_blank(const HChar *name)
{
    for (; *name; name++)
        if (*name != ' ' && (*name < '\t' || *name > '\r'))
            return False;
    return True;
}

static Bool is_preferred(const HChar *a, const HChar *b)
{
    // Profilers of MPI replace MPI_Foo by a call of PMPI_Foo.
    if (a[0] == 'P' && strncmp(b, "MPI_", 4) == 0 && jm_text_equal(a + 1, b))
        return True;
    if (b[0] == 'P' && strncmp(a, "MPI_", 4) == 0 && jm_text_equal(b + 1, a))
        return False;
    Bool has_a, has_b;
    SizeT bytes_a = length_without_version(a, &has_a), bytes_b = length_without_version(b, &has_b);
    if (!bytes_a != !bytes_b)
        return bytes_a != 0;
    if (is_blank(a) != is_blank(b))
        return is_blank(b);
    if (bytes_a != bytes_b)
        return bytes_a < bytes_b;
    if (has_a != has_b)
        return has_a;
    return strcmp(a, b) <= 0;
}

typedef struct {
    Function *at;
    UInt n;
    Array lists;
} Building;

// The core takes a symbol that lies whole in one mapping of code, and not in the procedure linkage table.
static Bool is_code(const Object *o, ULong start, ULong bytes)
{
    if (start - o->plt < o->plt_bytes)
        return False;
    for (UInt i = 0; i < o->n_code; i++) {
        const Segment *s = &o->code_at[i];
        if (start >= HOST_PAGE_DOWN(s->address) && start + bytes <= HOST_PAGE_UP(s->address + s->memory_bytes))
            return True;
    }
    return False;
}

static void add_symbols(Building *b, const Object *o, const Elf64_Sym *symbols, UInt n, SizeT strings_bytes, UInt flag)
{
    for (UInt i = 0; i < n; i++) {
        const Elf64_Sym *s = &symbols[i];
        UInt type = ELF64_ST_TYPE(s->st_info);
        if ((type != STT_FUNC && type != STT_OBJECT && type != STT_GNU_IFUNC) || ELF64_ST_BIND(s->st_info) > STB_WEAK ||
            !s->st_size || !(UInt)s->st_value || s->st_name >= strings_bytes || !s->st_name)
            continue;
        ULong bytes = (Long)s->st_size < 0 ? 1 : s->st_size > 0x7fffffff ? 0x7fffffff : s->st_size;
        ULong start = s->st_value - o->code;
        if (!is_code(o, s->st_value, bytes) || start + bytes > 0xffffffff)
            continue;
        b->at[b->n++] = (Function){start, bytes, s->st_name | flag};
    }
}

// Sort by start, then by size: radix sort by 11 bits at a time, the least significant first. It keeps the order of
// equals.
static void sort(Function **records, UInt n)
{
    Function *from = *records, *to = host_alloc("jm.native.function", n * sizeof *to);
    for (UInt pass = 0; pass < 6; pass++) {
        static UInt counts[2048];
        UInt shift = pass % 3 * 11, sum = 0;
        memset(counts, 0, sizeof counts);
        Bool is_by_start = pass >= 3;
        for (UInt i = 0; i < n; i++)
            counts[(is_by_start ? from[i].start : from[i].bytes) >> shift & 2047]++;
        UInt first = (is_by_start ? from[0].start : from[0].bytes) >> shift & 2047;
        if (counts[first] == n)
            continue;
        for (UInt i = 0; i < 2048; i++) {
            UInt count = counts[i];
            counts[i] = sum;
            sum += count;
        }
        for (UInt i = 0; i < n; i++)
            to[counts[(is_by_start ? from[i].start : from[i].bytes) >> shift & 2047]++] = from[i];
        Function *swap = from;
        from = to;
        to = swap;
    }
    *records = from;
    host_free(to);
}

static Bool is_same_range(const Function *a, const Function *b)
{
    return a->start == b->start && a->bytes == b->bytes;
}

// Drop dynamic symbols where as many others have the same range: a full table has the dynamic ones too.
static void drop_repeated(Building *b)
{
    UInt n = 0;
    for (UInt i = 0, end = 0; i < b->n; i = end) {
        UInt n_dynamic = 0;
        for (; end < b->n && is_same_range(&b->at[i], &b->at[end]); end++)
            n_dynamic += (b->at[end].name & NAME_IN_DYNAMIC) != 0;
        for (UInt k = i; k < end; k++)
            if (!(b->at[k].name & NAME_IN_DYNAMIC) || 2 * n_dynamic > end - i)
                b->at[n++] = b->at[k];
    }
    b->n = n;
}

static void add_names(Building *b, UInt name)
{
    if (!(name & NAME_IN_LIST)) {
        jm_array_add(&b->lists, &name);
        return;
    }
    for (Word i = name & ~NAME_IN_LIST; *(UInt *)jm_array_at(&b->lists, i) != END_OF_LIST; i++) {
        UInt listed = *(UInt *)jm_array_at(&b->lists, i);
        jm_array_add(&b->lists, &listed);
    }
}

// Make one function of those with the same range, with a list of their names: only when it is asked for are the names
// read, and one chosen.
static void merge(Building *b)
{
    UInt n = 0;
    for (UInt i = 0, end = 0; i < b->n; i = end) {
        while (end < b->n && is_same_range(&b->at[i], &b->at[end]))
            end++;
        Function merged = b->at[i];
        if (end - i > 1) {
            merged.name = NAME_IN_LIST | jm_array_n(&b->lists);
            for (UInt k = i; k < end; k++)
                add_names(b, b->at[k].name);
            jm_array_add(&b->lists, &(UInt){END_OF_LIST});
        }
        b->at[n++] = merged;
    }
    b->n = n;
}

#define MOST_MOVES (16u << 20) // of entries; only a broken file needs more

// Cut ranges that overlap: the earlier one ends where the next begins; of two with the same start the longer one begins
// where the shorter one ends. Return whether any did.
static Bool cut(Building *b)
{
    Bool any = False;
    UInt n_moves = 0;
    for (UInt i = 0; i + 1 < b->n && n_moves < MOST_MOVES; i++) {
        Function *one = &b->at[i], *two = &b->at[i + 1];
        if (one->start + one->bytes <= two->start)
            continue;
        any = True;
        if (one->start < two->start) {
            one->bytes = two->start - one->start;
        } else if (one->bytes != two->bytes) {
            if (one->bytes > two->bytes) {
                Function longer = *one;
                *one = *two;
                *two = longer;
            }
            two->start += one->bytes;
            two->bytes -= one->bytes;
        }
        for (UInt j = i + 1; j + 1 < b->n && b->at[j].start > b->at[j + 1].start; j++, n_moves++) {
            Function moved = b->at[j];
            b->at[j] = b->at[j + 1];
            b->at[j + 1] = moved;
        }
    }
    return any && n_moves < MOST_MOVES;
}

#define MOST_PASSES 64

static void arrange(Building *b)
{
    if (!b->n)
        return;
    sort(&b->at, b->n);
    drop_repeated(b);
    merge(b);
    for (UInt i = 0; i < MOST_PASSES && cut(b); i++)
        merge(b);
}

#define MOST_AT_ONCE 65536u // symbols that are mapped

static void add_table(Building *b, const Object *o, Int fd, const SymbolTable *t, UInt flag)
{
    for (ULong i = 0; i < t->n_symbols; i += MOST_AT_ONCE) {
        UInt n = t->n_symbols - i < MOST_AT_ONCE ? t->n_symbols - i : MOST_AT_ONCE;
        Part symbols = part_of(fd, t->symbols + i * sizeof(Elf64_Sym), n * sizeof(Elf64_Sym));
        if (symbols.at)
            add_symbols(b, o, symbols.at, n, t->strings_bytes, flag);
        release(symbols);
    }
}

static SizeT index_bytes_of(const Object *o)
{
    return o->n_functions * sizeof *o->functions + o->n_lists * sizeof *o->lists;
}

// No host_… but host_alloc while parts of files are mapped: the host must not see them.
static void build(Object *o, Int fd)
{
    Building b = {.lists = JM_ARRAY("jm.native.function", UInt)};
    n_builds++;
    // Pages that stay empty cost nothing.
    b.at = host_alloc("jm.native.function", (o->full.n_symbols + o->dynamic.n_symbols + 1) * sizeof *b.at);
    if (o->full.n_symbols) {
        FileStatus status;
        Int other = o->debug_path ? open_file(o->debug_path, &status) : fd;
        if (other >= 0 && (other == fd || is_same_file(&status, &o->debug_status)))
            add_table(&b, o, other, &o->full, 0);
        if (other != fd)
            jm_close(other);
    }
    if (o->dynamic.n_symbols)
        add_table(&b, o, fd, &o->dynamic, NAME_IN_DYNAMIC);
    arrange(&b);
    if (o->is_mapped_only && b.n)
        jm_looked_at(o->dynamic.symbols, o->dynamic.symbols + o->dynamic.n_symbols * sizeof(Elf64_Sym));
    o->n_functions = b.n;
    o->functions = host_alloc("jm.native.function", (b.n + 1) * sizeof *b.at);
    memcpy(o->functions, b.at, b.n * sizeof *b.at);
    host_free(b.at);
    o->n_lists = jm_array_n(&b.lists);
    o->lists = (UInt *)b.lists.records;
    index_bytes += index_bytes_of(o);
}

static void drop_functions(Object *o)
{
    index_bytes -= index_bytes_of(o);
    host_free(o->functions);
    host_free(o->lists);
    o->functions = NULL;
    o->lists = NULL;
    o->n_functions = o->n_lists = 0;
}

static void drop_oldest(const Object *but)
{
    while (index_bytes > KEPT_BYTES) {
        Object *oldest = NULL;
        for (Object *o = jm_map_next(&objects, NULL); o; o = jm_map_next(&objects, o))
            if (o != but && o->functions && o->n_functions && (!oldest || o->used < oldest->used))
                oldest = o;
        if (!oldest)
            return;
        drop_functions(oldest);
    }
}

// ---- names ---------------------------------------------------------------------------------------------------

// Names read lately: many addresses are in the same functions.
typedef struct {
    const Object *object; // NULL: free
    UInt start;
    HChar *name;
} Named;

#define NAMED_BITS 9
static Named named[1u << NAMED_BITS];

static Named *named_at(const Object *o, UInt start)
{
    return &named[jm_place((Addr)o ^ start, NAMED_BITS)];
}

static void forget_names(const Object *o)
{
    for (UInt i = 0; i < sizeof named / sizeof *named; i++)
        if (named[i].object == o) {
            host_free(named[i].name);
            named[i] = (Named){0};
        }
}

// Read a name of the object's tables, from its opened file and that of its debug information.
static const HChar *read_name(const Object *o, Int fd, Int debug, UInt name)
{
    if (name & NAME_IN_DYNAMIC)
        return string_at(o->is_mapped_only, fd, o->dynamic.strings + (name & ~NAME_IN_DYNAMIC));
    return string_at(False, o->debug_path ? debug : fd, o->full.strings + name);
}

// Read the names of a function and return a copy of the preferred one.
static HChar *read_symbol(const Object *o, Int fd, UInt name)
{
    HChar *best = NULL;
    FileStatus status;
    Int debug = o->debug_path ? open_file(o->debug_path, &status) : -1;
    Bool is_same = debug >= 0 && is_same_file(&status, &o->debug_status);
    const UInt *names = name & NAME_IN_LIST ? &o->lists[name & ~NAME_IN_LIST] : (const UInt[]){name, END_OF_LIST};
    for (; *names != END_OF_LIST; names++) {
        const HChar *text = read_name(o, fd, is_same ? debug : -1, *names);
        if (!text || (best && is_preferred(best, text)))
            continue;
        host_free(best);
        best = jm_text_copy("jm.native.name", text);
    }
    jm_close(debug);
    return best;
}

// ---- objects -------------------------------------------------------------------------------------------------

static void forget(Object *o)
{
    forget_names(o);
    drop_functions(o);
    host_free(o->soname);
    host_free(o->debug_path);
    *o = (Object){.node = o->node, .path = o->path, .device = o->device};
}

static void read_object(Object *o, const Mapping *code)
{
    Addr header = jm_elf_header(code->start);
    forget(o);
    if (!read_file(o, header, code->inode)) {
        FileStatus status = o->status;
        forget(o);
        o->status = status;
        read_mapped(o, header);
    }
}

static Object *object_of(const Mapping *code)
{
    if (code->as != MAPPED_FILE || !code->path)
        return NULL;
    Object *o = jm_map_find(&objects, code->inode);
    while (o && (o->node.key != code->inode || o->device != code->device || !jm_text_equal(o->path, code->path)))
        o = (Object *)o->node.next;
    if (!o) {
        o = host_alloc_zeroed("jm.native.object", 1, sizeof *o);
        o->node.key = code->inode;
        o->device = code->device;
        o->path = jm_text_copy("jm.native.object", code->path);
        jm_map_add(&objects, o);
        read_object(o, code);
    } else if (o->is_mapped_only && jm_elf_header(code->start) != o->header) {
        read_object(o, code);
    }
    o->used = ++n_uses;
    return o;
}

// Open the object's file, to read symbols. If it has changed, all of it is read anew first. -1 if only what is mapped
// is left.
static Int open_object(Object *o, const Mapping *code)
{
    FileStatus status;
    Int fd = o->is_mapped_only ? -1 : open_file(o->path, &status);
    if (o->is_mapped_only || (fd >= 0 && is_same_file(&o->status, &status)))
        return fd;
    jm_close(fd);
    read_object(o, code);
    return o->is_mapped_only ? -1 : open_file(o->path, &status);
}

// The address in the file of an address in a mapping of it; 0 if no code of the file is there.
static ULong address_in_file(const Object *o, const Mapping *code, Addr ip)
{
    ULong offset = ip - code->start + code->offset;
    for (UInt i = 0; i < o->n_code; i++) {
        const Segment *s = &o->code_at[i];
        if (offset >= HOST_PAGE_DOWN(s->offset) && offset < HOST_PAGE_UP(s->offset + s->bytes))
            return offset - s->offset + s->address;
    }
    return 0;
}

static const Function *find(const Object *o, ULong address)
{
    UInt low = 0, high = o->n_functions;
    ULong wanted = address - o->code;
    while (low < high) {
        UInt middle = low + (high - low) / 2;
        if (o->functions[middle].start <= wanted)
            low = middle + 1;
        else
            high = middle;
    }
    const Function *f = low ? &o->functions[low - 1] : NULL;
    return f && wanted - f->start < f->bytes ? f : NULL;
}

// Find the function in the object's index as it is after its file has been opened.
static const Function *find_in_file(Object *o, const Mapping *code, Addr ip, Int fd)
{
    ULong address = address_in_file(o, code, ip);
    if (address && !o->functions) {
        build(o, fd);
        drop_oldest(o);
    }
    return address ? find(o, address) : NULL;
}

const HChar *jm_function_at(const Mapping *code, Addr ip, Bool *is_entry)
{
    Object *o = object_of(code);
    ULong address = o ? address_in_file(o, code, ip) : 0;
    if (!address)
        return NULL;
    const Function *f = o->functions ? find(o, address) : NULL;
    if (o->functions && !f)
        return NULL;
    Named *known = f ? named_at(o, f->start) : NULL;
    if (!f || known->object != o || known->start != f->start) {
        Int fd = open_object(o, code);
        f = find_in_file(o, code, ip, fd);
        HChar *symbol = f ? read_symbol(o, fd, f->name) : NULL;
        jm_close(fd);
        if (!symbol)
            return NULL;
        known = named_at(o, f->start);
        host_free(known->name);
        *known = (Named){o, f->start, jm_text_copy("jm.native.name", jm_demangled(symbol))};
        host_free(symbol);
    }
    *is_entry = f->start == address_in_file(o, code, ip) - o->code;
    return known->name;
}

ULong jm_line_address(const Mapping *code, Addr ip, const HChar **version)
{
    const Object *o = object_of(code);
    *version = o && o->has_lines ? o->version : NULL;
    return *version ? address_in_file(o, code, ip) : 0;
}

Bool jm_object_file(const Mapping *code, Bool is_new, ObjectFile *file)
{
    Object *o = object_of(code);
    FileStatus status;
    if (o && is_new && !o->is_mapped_only && !(jm_path_status(o->path, &status) && is_same_file(&o->status, &status)))
        read_object(o, code);
    if (!o || !o->is_elf)
        return False;
    *file = (ObjectFile){o->soname, code->start, code->end};
    for (UInt i = 0; o->text_bytes && i < o->n_code; i++) {
        const Segment *s = &o->code_at[i];
        if (o->text - s->address < s->memory_bytes) {
            file->text = o->text - s->address + s->offset - code->offset + code->start;
            file->text_end = file->text + o->text_bytes;
        }
    }
    return True;
}
