// SPDX-License-Identifier: GPL-2.0-or-later
//
// Dynamic symbols and unwind tables, read from the ELF files as they are mapped in the program. Stripped files keep
// both. Layouts: the ELF-64 specification. See elf.h.

#include "symbols/elf.h"
#include "base/client_memory.h"
#include "base/libc.h"
#include "base/text.h"
#include "host/host.h"
#include "symbols/file_pages.h"

#include <elf.h>

// ---- headers -------------------------------------------------------------------------------------------------

// Limit of the search below an address for its file's header. An object has a handful of segments; alignment to large
// pages leaves gaps between them, in which other mappings may lie.
#define MAX_SEGMENTS 64

// The header is the start of the file's mapping at offset 0, which lies below.
Addr jm_elf_header(Addr inside)
{
    Mapping here;
    if (!host_mapping_at(inside, &here) || here.as != MAPPED_FILE)
        return 0;
    const ULong device = here.device, inode = here.inode;
    for (UInt i = 0; i < MAX_SEGMENTS; i++) {
        if (here.as == MAPPED_FILE && here.device == device && here.inode == inode && here.offset == 0) {
            Elf64_Ehdr header;
            Bool is_object =
                jm_read_bytes(here.start, &header, sizeof header) && memcmp(header.e_ident, ELFMAG, SELFMAG) == 0;
            return is_object ? here.start : 0;
        }
        if (!here.start)
            break;
        host_mapping_at(here.start - 1, &here); // a mapping, or a gap
    }
    return 0;
}

// Find the load bias of the ELF file with its header at `base`, and the address of its segment of type `type`.
static Bool find_segment(Addr base, UInt type, Addr *bias, Addr *segment_address)
{
    Elf64_Ehdr header;
    if (!base || !jm_read_bytes(base, &header, sizeof header))
        return False;
    *bias = base;
    *segment_address = 0;
    for (UInt i = 0; i < header.e_phnum; i++) {
        Elf64_Phdr segment;
        if (!jm_read_bytes(base + header.e_phoff + (Addr)i * header.e_phentsize, &segment, sizeof segment))
            return False;
        if (segment.p_type == PT_LOAD && segment.p_offset == 0 && segment.p_filesz) // not one of zeros alone
            *bias = base - segment.p_vaddr;
        if (segment.p_type == type)
            *segment_address = segment.p_vaddr;
    }
    if (!*segment_address)
        return False;
    *segment_address += *bias;
    return True;
}

// ---- dynamic symbols -----------------------------------------------------------------------------------------

// Count the dynamic symbols, by whichever hash table the file has.
static UInt n_dynamic_symbols(Addr hash, Addr gnu_hash)
{
    UInt n = 0;
    if (hash && jm_read_uint(hash + 4, &n)) // nchain
        return n;
    UInt n_buckets, first, bloom_words;
    if (!gnu_hash || !jm_read_uint(gnu_hash, &n_buckets) || !jm_read_uint(gnu_hash + 4, &first) ||
        !jm_read_uint(gnu_hash + 8, &bloom_words))
        return 0;
    Addr buckets = gnu_hash + 16 + (Addr)bloom_words * 8;
    Addr chains = buckets + (Addr)n_buckets * 4;
    for (UInt i = 0; i < n_buckets; i++) {
        UInt start;
        if (!jm_read_uint(buckets + (Addr)i * 4, &start))
            return 0;
        if (start > n)
            n = start;
    }
    if (n < first)
        return first;
    // The last chain ends at the first entry with its lowest bit set.
    for (;; n++) {
        UInt value;
        if (!jm_read_uint(chains + (Addr)(n - first) * 4, &value))
            return 0;
        if (value & 1)
            return n + 1;
    }
}

Addr jm_find_dynamic_symbol(Addr inside, const HChar *name)
{
    Addr bias, dynamic;
    if (!find_segment(jm_elf_header(inside), PT_DYNAMIC, &bias, &dynamic))
        return 0;
    Addr symbols = 0, strings = 0, hash = 0, gnu_hash = 0;
    for (Addr at = dynamic;; at += sizeof(Elf64_Dyn)) {
        Elf64_Dyn entry;
        if (!jm_read_bytes(at, &entry, sizeof entry) || entry.d_tag == DT_NULL)
            break;
        // The loader has added the bias to these values, except on the few systems where it leaves the section
        // read-only.
        Addr value = entry.d_un.d_ptr < bias ? entry.d_un.d_ptr + bias : entry.d_un.d_ptr;
        if (entry.d_tag == DT_SYMTAB)
            symbols = value;
        else if (entry.d_tag == DT_STRTAB)
            strings = value;
        else if (entry.d_tag == DT_HASH)
            hash = value;
        else if (entry.d_tag == DT_GNU_HASH)
            gnu_hash = value;
    }
    if (!symbols || !strings)
        return 0;
    UInt n = n_dynamic_symbols(hash, gnu_hash);
    for (UInt i = 0; i < n; i++) {
        Elf64_Sym symbol;
        HChar found[128];
        if (!jm_read_bytes(symbols + (Addr)i * sizeof symbol, &symbol, sizeof symbol))
            return 0;
        if (symbol.st_value && symbol.st_shndx != SHN_UNDEF &&
            jm_read_string(strings + symbol.st_name, found, sizeof found) && jm_text_equal(found, name))
            return symbol.st_value + bias;
    }
    return 0;
}

// ---- unwind tables -------------------------------------------------------------------------------------------

// .eh_frame_hdr (Linux Standard Base, "Exception Frames"): a sorted table of (function start, unwind entry), as offsets
// from the header itself, in the one encoding that linkers write.
typedef struct {
    UChar version, frame_encoding, count_encoding, table_encoding;
    Int frame_offset;
    UInt n_entries;
} EhFrameHeader;

#define UDATA4         0x03
#define DATAREL_SDATA4 0x3b

// Cache of the tables found for recent mappings. Finding a table takes a walk over the object's mappings; finding that
// it has no table takes a longer one.
typedef struct {
    Addr start, end; // of the code's mapping
    Addr table;      // 0: the object has no table
    UInt n_entries;
    Addr last_entry; // the last function's; linkers write entries in order
} UnwindTable;

#define N_REMEMBERED 16
static UnwindTable unwind_tables[N_REMEMBERED];
static UInt n_unwind_tables;

void jm_elf_forget(void)
{
    n_unwind_tables = 0;
}

static UnwindTable find_unwind_table(Addr ip)
{
    Mapping code;
    host_mapping_at(ip, &code);
    UnwindTable found = {.start = code.start, .end = code.end};
    Addr bias, table;
    EhFrameHeader header;
    if (find_segment(jm_elf_header(ip), PT_GNU_EH_FRAME, &bias, &table) &&
        jm_read_bytes(table, &header, sizeof header) && header.version == 1 && header.count_encoding == UDATA4 &&
        header.table_encoding == DATAREL_SDATA4 && jm_is_readable(table + sizeof header, header.n_entries * 8ULL)) {
        found.table = table;
        found.n_entries = header.n_entries;
        Int last;
        Addr header_end = table + sizeof header + header.n_entries * 8ULL;
        Bool is_behind = header.n_entries && jm_read_uint(header_end - 4, (UInt *)&last) && last > 0;
        found.last_entry = is_behind ? table + last : header_end;
        jm_looked_at(table, found.last_entry);
    }
    return found;
}

// Return the table for `ip`; NULL if its object has no table.
static const UnwindTable *unwind_table_of(Addr ip)
{
    UInt n = n_unwind_tables < N_REMEMBERED ? n_unwind_tables : N_REMEMBERED;
    const UnwindTable *found = NULL;
    for (UInt i = 0; i < n && !found; i++)
        if (ip >= unwind_tables[i].start && ip < unwind_tables[i].end)
            found = &unwind_tables[i];
    if (!found) {
        if (!jm_is_readable(ip, 1))
            return NULL;
        UnwindTable *fresh = &unwind_tables[n_unwind_tables++ % N_REMEMBERED];
        *fresh = find_unwind_table(ip);
        found = fresh;
    }
    return found->table ? found : NULL;
}

// Find the pair of offsets (function, unwind entry) for `ip`; NULL if `ip` is below all functions.
static const Int *find_entry(const UnwindTable *t, Addr ip)
{
    const Int *entries = (const Int *)(t->table + sizeof(EhFrameHeader));
    Long wanted = ip - t->table;
    UInt low = 0, high = t->n_entries; // invariant: the last entry not above `wanted` is in [low - 1, high)
    while (low < high) {
        UInt middle = low + (high - low) / 2;
        if (entries[2 * middle] <= wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? &entries[2 * (low - 1)] : NULL;
}

Addr jm_find_unwind_entry(Addr ip, UnwindAddress which)
{
    const UnwindTable *t = unwind_table_of(ip);
    const Int *entry = t ? find_entry(t, ip) : NULL;
    if (!entry)
        return 0;
    jm_looked_at(t->table, t->last_entry);
    return t->table + entry[which];
}

Bool jm_has_unwind_table(Addr inside)
{
    return unwind_table_of(inside) != NULL;
}
