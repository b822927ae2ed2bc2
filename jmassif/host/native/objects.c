// SPDX-License-Identifier: GPL-2.0-or-later
//
// Reads the loader's list (struct r_debug of link.h, which debuggers read) and the dynamic sections of its objects.

#include "host/native/objects.h"
#include "base/kernel.h"
#include "base/libc.h"
#include "host/host.h"
#include "host/native/hook.h"

#include <asm/unistd.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>

#pragma GCC visibility push(default)
extern struct r_debug _r_debug; // the loader's
#pragma GCC visibility pop
// This library's.
extern const Elf64_Ehdr __ehdr_start __attribute__((visibility("hidden")));
extern Elf64_Dyn _DYNAMIC[] __attribute__((visibility("hidden")));

// The object at a position in the order of the list, from 0. False at the end.
static Bool loaded_object(UInt i, LoadedObject *object)
{
    const struct link_map *at = _r_debug.r_map;
    for (; at && i; i--)
        at = at->l_next;
    if (at)
        *object = (LoadedObject){at->l_addr, at->l_name, (Addr)at->l_ld};
    return at != NULL;
}

typedef struct {
    const Elf64_Sym *symbols;
    const HChar *strings;
    const UInt *gnu_hash, *hash;
} Exports;

static Exports exports_of(const LoadedObject *object)
{
    Exports e = {0};
    for (const Elf64_Dyn *d = (const Elf64_Dyn *)object->dynamic; d->d_tag != DT_NULL; d++) {
        // glibc has added the bias to these values; musl has not, nor anybody in the vDSO.
        Addr value = d->d_un.d_ptr < object->bias ? d->d_un.d_ptr + object->bias : d->d_un.d_ptr;
        switch (d->d_tag) {
        case DT_SYMTAB:
            e.symbols = (const Elf64_Sym *)value;
            break;
        case DT_STRTAB:
            e.strings = (const HChar *)value;
            break;
        case DT_GNU_HASH:
            e.gnu_hash = (const UInt *)value;
            break;
        case DT_HASH:
            e.hash = (const UInt *)value;
            break;
        }
    }
    return e;
}

// Not strcmp: a sanitizer asks for functions before this library's calls are bound.
static Bool is_same(const HChar *a, const HChar *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

static Bool is_function(const Exports *e, UInt i, const HChar *name)
{
    const Elf64_Sym *s = &e->symbols[i];
    UInt type = ELF64_ST_TYPE(s->st_info);
    return s->st_shndx != SHN_UNDEF && s->st_value && (type == STT_FUNC || type == STT_NOTYPE) &&
           is_same(e->strings + s->st_name, name);
}

// The tables' forms: "GNU hash" and System V's (gABI, "Hash Table").
UInt jm_gnu_hash(const HChar *name)
{
    UInt hash = 5381;
    for (const UChar *c = (const UChar *)name; *c; c++)
        hash = hash * 33 + *c;
    return hash;
}

// The symbols of a bucket, which ends with a hash that has its lowest bit set. 0: no more.
static UInt first_in_bucket(const UInt *table, UInt hash)
{
    const UInt n_buckets = table[0], first = table[1], n_words = table[2];
    const UInt i = n_buckets ? (table + 4 + n_words * 2)[hash % n_buckets] : 0;
    return i < first ? 0 : i;
}

static UInt hash_of(const UInt *table, UInt i)
{
    const UInt n_buckets = table[0], first = table[1], n_words = table[2];
    return (table + 4 + n_words * 2 + n_buckets)[i - first];
}

static UInt next_in_bucket(const UInt *table, UInt i)
{
    return hash_of(table, i) & 1 ? 0 : i + 1;
}

Bool jm_gnu_hash_has(const UInt *table, UInt hash)
{
    for (UInt i = first_in_bucket(table, hash); i; i = next_in_bucket(table, i))
        if ((hash_of(table, i) | 1) == (hash | 1))
            return True;
    return False;
}

UInt jm_gnu_hash_first(const UInt *table)
{
    for (UInt bucket = 0; bucket < table[0]; bucket++)
        if (first_in_bucket(table, bucket))
            return table[1];
    return 0;
}

static UInt find_by_gnu_hash(const Exports *e, const HChar *name)
{
    const UInt *table = e->gnu_hash, hash = jm_gnu_hash(name);
    for (UInt i = first_in_bucket(table, hash); i; i = next_in_bucket(table, i))
        if ((hash_of(table, i) | 1) == (hash | 1) && is_function(e, i, name))
            return i;
    return 0;
}

static UInt find_by_hash(const Exports *e, const HChar *name)
{
    UInt n = e->hash[1];
    for (UInt i = 1; i < n; i++)
        if (is_function(e, i, name))
            return i;
    return 0;
}

Addr jm_exported_by(const LoadedObject *object, const HChar *name)
{
    Exports e = exports_of(object);
    if (!e.symbols || !e.strings)
        return 0;
    UInt i = e.gnu_hash ? find_by_gnu_hash(&e, name) : e.hash ? find_by_hash(&e, name) : 0;
    return i ? object->bias + e.symbols[i].st_value : 0;
}

static LoadedObject own_object(void)
{
    return (LoadedObject){(Addr)&__ehdr_start, "", (Addr)_DYNAMIC};
}

Addr jm_exported_by_own(const HChar *name)
{
    const LoadedObject own = own_object();
    return jm_exported_by(&own, name);
}

// Loaders pass over a symbol whose value is 0.
static void withdraw(const Elf64_Sym *symbol)
{
    const Addr start = HOST_PAGE_DOWN((Addr)symbol), end = HOST_PAGE_DOWN((Addr)(symbol + 1) - 1) + HOST_PAGE_BYTES;
    if (jm_kernel_call(__NR_mprotect, start, end - start, PROT_READ | PROT_WRITE, 0, 0) != 0)
        return;
    ((Elf64_Sym *)symbol)->st_value = 0;
    jm_kernel_call(__NR_mprotect, start, end - start, PROT_READ, 0, 0);
}

void jm_withdraw_own(Bool (*is_one)(const HChar *name))
{
    const LoadedObject own = own_object();
    const Exports e = exports_of(&own);
    for (UInt bucket = 0; e.gnu_hash && bucket < e.gnu_hash[0]; bucket++)
        for (UInt i = first_in_bucket(e.gnu_hash, bucket); i; i = next_in_bucket(e.gnu_hash, i))
            if (is_one(e.strings + e.symbols[i].st_name))
                withdraw(&e.symbols[i]);
}

static Addr next(const HChar *name, LoadedObject *object)
{
    Bool is_behind_us = False;
    for (UInt i = 0; loaded_object(i, object); i++) {
        Addr found = is_behind_us ? jm_exported_by(object, name) : 0;
        if (found)
            return found;
        is_behind_us |= object->dynamic == (Addr)_DYNAMIC;
    }
    return 0;
}

Addr jm_native_next(const HChar *name)
{
    LoadedObject object;
    return next(name, &object);
}

Bool jm_native_next_is_with(const HChar *name, const HChar *other)
{
    LoadedObject object;
    return next(name, &object) && jm_exported_by(&object, other);
}
