// SPDX-License-Identifier: GPL-2.0-or-later
//
// The list of loaded objects, brought up to date while dl_iterate_phdr holds the loader's lock; see loaded.h.

#define _GNU_SOURCE
#include "host/native/loaded.h"
#include "base/text.h"
#include "host/host.h"
#include "host/native/hook.h"
#include "host/native/objects.h"
#include "host/native/stubs.h"

#include <link.h>
#include <sys/auxv.h>

// ---- reading an object ---------------------------------------------------------------------------------------

static void read_segments(NativeObject *o)
{
    o->start = ~(Addr)0;
    for (UInt i = 0; i < o->n_segments; i++) {
        const Elf64_Phdr *s = &o->segments[i];
        Addr start = o->bias + s->p_vaddr, end = start + s->p_memsz;
        if (s->p_type == PT_LOAD) {
            o->start = start < o->start ? start : o->start;
            o->end = end > o->end ? end : o->end;
        } else if (s->p_type == PT_GNU_RELRO) { // rounded as the loader does
            o->relro_start = HOST_PAGE_DOWN(start);
            o->relro_end = HOST_PAGE_DOWN(end);
        } else if (s->p_type == PT_DYNAMIC) {
            o->dynamic = (const Elf64_Dyn *)start;
        }
    }
}

static void read_dynamic(NativeObject *o)
{
    const HChar *const *texts[] = {&o->soname, &o->rpath, &o->runpath};
    UWord offsets[] = {0, 0, 0};
    Bool has_text[] = {False, False, False};
    for (const Elf64_Dyn *d = o->dynamic; d->d_tag != DT_NULL; d++) {
        UWord value = d->d_un.d_val;
        Addr address = value < o->bias ? value + o->bias : value; // as in objects.c
        UInt text = d->d_tag == DT_SONAME ? 0 : d->d_tag == DT_RPATH ? 1 : d->d_tag == DT_RUNPATH ? 2 : 3;
        if (text < 3)
            offsets[text] = value, has_text[text] = True;
        else if (d->d_tag == DT_SYMTAB)
            o->symbols = (const Elf64_Sym *)address;
        else if (d->d_tag == DT_STRTAB)
            o->strings = (const HChar *)address;
        else if (d->d_tag == DT_GNU_HASH)
            o->gnu_hash = (const UInt *)address;
        else if (d->d_tag == DT_RELA)
            o->relocations = (const Elf64_Rela *)address;
        else if (d->d_tag == DT_RELASZ)
            o->n_relocations = value / sizeof(Elf64_Rela);
        else if (d->d_tag == DT_RELACOUNT)
            o->n_relative = value;
        else if (d->d_tag == DT_JMPREL)
            o->linkage = (const Elf64_Rela *)address;
        else if (d->d_tag == DT_PLTRELSZ)
            o->n_linkage = value / sizeof(Elf64_Rela);
    }
    for (UInt i = 0; i < 3; i++)
        *(const HChar **)texts[i] = has_text[i] ? o->strings + offsets[i] : NULL;
}

// False if there is nothing to read, as in the kernel's object, which nobody has relocated.
static Bool read_object(const struct dl_phdr_info *info, NativeObject *o)
{
    *o = (NativeObject){.bias = info->dlpi_addr,
                        .path = info->dlpi_name ? info->dlpi_name : "",
                        .segments = info->dlpi_phdr,
                        .n_segments = info->dlpi_phnum};
    read_segments(o);
    if (!o->dynamic || o->start == getauxval(AT_SYSINFO_EHDR))
        return False;
    read_dynamic(o);
    return o->symbols && o->strings;
}

Addr jm_native_exported(const NativeObject *o, const HChar *name)
{
    return jm_exported_by(&(LoadedObject){o->bias, o->path, (Addr)o->dynamic}, name);
}

// ---- the list ------------------------------------------------------------------------------------------------

#define MAX_OBJECTS 4096
static NativeObject objects[MAX_OBJECTS];
static UInt n_objects;
static Bool has_started;
static ULong n_loaded_ever, n_unloaded_ever;

extern Elf64_Dyn _DYNAMIC[] __attribute__((visibility("hidden"))); // this library's

static int iterate(int (*callback)(struct dl_phdr_info *, size_t, void *), void *context)
{
    static int (*original)(int (*)(struct dl_phdr_info *, size_t, void *), void *);
    if (!original) // the program may have a function of this name
        *(Addr *)&original = jm_native_next("dl_iterate_phdr");
    return original(callback, context);
}

static Bool is_same(const NativeObject *a, const NativeObject *b)
{
    return a->bias == b->bias && a->segments == b->segments && a->dynamic == b->dynamic && a->symbols == b->symbols &&
           a->relocations == b->relocations && a->n_relocations == b->n_relocations && a->linkage == b->linkage &&
           a->n_linkage == b->n_linkage && a->end == b->end;
}

// Known objects come in the same order again unless one has been unloaded. `context` is the index of the next one; NULL
// if one has been.
static int note_object(struct dl_phdr_info *info, size_t size, void *context)
{
    UInt *next = context;
    if (next && *next < n_objects && objects[*next].bias == info->dlpi_addr &&
        objects[*next].segments == info->dlpi_phdr) {
        objects[(*next)++].is_loaded = True;
        return 0;
    }
    NativeObject object;
    if (!read_object(info, &object))
        return 0;
    for (UInt i = 0; i < n_objects; i++)
        if (is_same(&objects[i], &object)) {
            // Another one like it may have been loaded in its place: the name is in other memory, and it has no stubs.
            const NativeObject before = objects[i];
            objects[i] = object;
            objects[i].is_patched = before.is_patched && (!before.sample || *before.sample == before.sample_value ||
                                                          jm_native_is_stub(*before.sample));
            objects[i].is_from_start = before.is_from_start;
            objects[i].sample = before.sample;
            objects[i].sample_value = before.sample_value;
            objects[i].is_loaded = True;
            return 0;
        }
    if (n_objects == MAX_OBJECTS)
        return 0;
    object.is_patched = object.dynamic == _DYNAMIC || object.start == getauxval(AT_BASE); // we; the loader
    object.is_loaded = True;
    object.is_from_start = !has_started;
    objects[n_objects++] = object;
    return 0;
}

// Another object may have been loaded where one was.
static Bool has_gone(Addr address)
{
    Bool gone = False;
    for (UInt i = 0; i < n_objects; i++)
        if (address >= objects[i].start && address < objects[i].end) {
            if (objects[i].is_loaded)
                return False;
            gone = True;
        }
    return gone;
}

static void forget_unloaded(void)
{
    UInt n = 0;
    for (UInt i = 0; i < n_objects; i++)
        n += objects[i].is_loaded;
    if (n == n_objects)
        return;
    jm_native_stubs_forget(has_gone);
    n = 0;
    for (UInt i = 0; i < n_objects; i++)
        if (objects[i].is_loaded)
            objects[n++] = objects[i];
    n_objects = n;
}

static void update(const struct dl_phdr_info *info)
{
    if (has_started && info->dlpi_adds == n_loaded_ever && info->dlpi_subs == n_unloaded_ever)
        return;
    const Bool has_unloaded = info->dlpi_subs != n_unloaded_ever;
    n_loaded_ever = info->dlpi_adds;
    n_unloaded_ever = info->dlpi_subs;
    for (UInt i = 0; i < n_objects; i++)
        objects[i].is_loaded = False;
    iterate(note_object, has_unloaded ? NULL : &(UInt){0});
    forget_unloaded();
    has_started = True;
}

typedef struct {
    Bool (*each)(NativeObject *object, void *context);
    void *context;
} Visit;

// The loader's lock may be taken again by the thread that holds it. One call visits all.
static int visit_all(struct dl_phdr_info *info, size_t size, void *context)
{
    const Visit *v = context;
    update(info);
    for (UInt i = 0; i < n_objects; i++)
        if (v->each(&objects[i], v->context))
            break;
    return 1;
}

void jm_native_each_object(Bool (*each)(NativeObject *object, void *context), void *context)
{
    iterate(visit_all, &(Visit){each, context});
}

NativeObject *jm_native_objects(UInt *n)
{
    *n = n_objects;
    return objects;
}

typedef struct {
    Addr address;
    const HChar *soname;
    Bool is_in;
} Search;

static Bool look_in(NativeObject *o, void *context)
{
    Search *s = context;
    if (s->address < o->start || s->address >= o->end)
        return False;
    s->is_in = jm_text_matches(s->soname, o->soname ? o->soname : "");
    return True;
}

Bool jm_native_is_in(Addr address, const HChar *soname)
{
    Search search = {address, soname, jm_text_equal(soname, "*")};
    if (!search.is_in)
        jm_native_each_object(look_in, &search);
    return search.is_in;
}
