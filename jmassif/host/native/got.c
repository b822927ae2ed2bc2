// SPDX-License-Identifier: GPL-2.0-or-later
//
// See got.h.

#include "host/native/got.h"
#include "base/kernel.h"
#include "base/text.h"
#include "host/native/cuda_functions.h"
#include "host/native/loaded.h"
#include "host/native/hook.h"
#include "host/native/objects.h"
#include "host/native/stubs.h"

#include <asm/unistd.h>
#include <sys/mman.h>

#if defined(__x86_64__)
#define IS_LINKAGE(type) ((type) == R_X86_64_JUMP_SLOT)
#define IS_ADDRESS(type) ((type) == R_X86_64_GLOB_DAT || (type) == R_X86_64_64)
#define IS_COPY(type)    ((type) == R_X86_64_COPY)
#elif defined(__aarch64__)
#define IS_LINKAGE(type) ((type) == R_AARCH64_JUMP_SLOT)
#define IS_ADDRESS(type) ((type) == R_AARCH64_GLOB_DAT || (type) == R_AARCH64_ABS64)
#define IS_COPY(type)    ((type) == R_AARCH64_COPY)
#endif

// ---- the function that an entry which is not bound will call -----------------------------------------------------

static Bool has_name(const NativeObject *object, const HChar *name)
{
    return jm_text_equal(object->soname ? object->soname : jm_text_file_name(object->path), name);
}

// Return whether an object needs another, directly or by way of at most `depth` others.
static Bool needs(const NativeObject *o, const NativeObject *wanted, UInt depth)
{
    UInt n;
    const NativeObject *objects = jm_native_objects(&n);
    for (const Elf64_Dyn *d = o->dynamic; d->d_tag != DT_NULL; d++) {
        if (d->d_tag != DT_NEEDED)
            continue;
        const HChar *name = o->strings + d->d_un.d_val;
        if (has_name(wanted, name))
            return True;
        for (UInt i = 0; depth && i < n; i++)
            if (has_name(&objects[i], name) && needs(&objects[i], wanted, depth - 1))
                return True;
    }
    return False;
}

// The function that the loader will find, if there can be no doubt: only one object has the name, and it came with the
// program or is needed by the caller. 0: only the loader knows.
static Addr only_definition(const NativeObject *caller, const HChar *name)
{
    UInt n;
    const NativeObject *objects = jm_native_objects(&n), *only = NULL;
    Addr found = 0;
    for (UInt i = 0; i < n; i++) {
        Addr here = jm_native_exported(&objects[i], name);
        if (here && only)
            return 0;
        if (here)
            only = &objects[i], found = here;
    }
    return only && (only == caller || only->is_from_start || needs(caller, only, 2)) ? found : 0;
}

// ---- patching ------------------------------------------------------------------------------------------------

typedef struct {
    NativeObject *object;
    Bool is_open; // its read-only entries can be written
} Patch;

static Bool is_in_segment(const NativeObject *o, Addr address, UInt flag)
{
    for (UInt i = 0; i < o->n_segments; i++) {
        const Elf64_Phdr *s = &o->segments[i];
        if (s->p_type == PT_LOAD && (s->p_flags & flag) && address - (o->bias + s->p_vaddr) < s->p_memsz)
            return True;
    }
    return False;
}

static Bool protect_relro(const NativeObject *o, Int protection)
{
    return jm_kernel_call(__NR_mprotect, o->relro_start, o->relro_end - o->relro_start, protection, 0, 0) == 0;
}

static void write_entry(Patch *patch, UWord *place, UWord value)
{
    NativeObject *o = patch->object;
    if (value == *place || !is_in_segment(o, (Addr)place, PF_W))
        return;
    if ((Addr)place >= o->relro_start && (Addr)place < o->relro_end && !patch->is_open) {
        if (!protect_relro(o, PROT_READ | PROT_WRITE))
            return;
        patch->is_open = True;
    }
    __atomic_store_n(place, value, __ATOMIC_RELEASE);
    if (jm_native_is_stub(value) || !o->sample) {
        o->sample = place;
        o->sample_value = value;
    }
}

// An object that is loaded with RTLD_DEEPBIND finds functions of the C library there, and not the hooks that this
// library exports. They are put into its table, unless the program has a function of that name.
static Bool has_deep_binding;

static Addr replacement_of(const HChar *name, Addr value, Bool is_unbound)
{
    UInt n;
    Addr hook = jm_exported_by_own(name);
    if (!hook || jm_native_exported(jm_native_objects(&n), name))
        return 0;
    return is_unbound || value == jm_native_next(name) ? hook : 0;
}

void jm_native_binds_deeply(void)
{
    has_deep_binding = True;
}

// In a program built for a fixed address, a function's address is that of the program's procedure linkage table, for
// all objects. It leads on to the program's own entry.
static Bool is_programs_linkage(Addr address, const HChar *name)
{
    UInt n;
    const NativeObject *program = jm_native_objects(&n);
    return program->bias == 0 && is_in_segment(program, address, PF_X) && jm_native_exported(program, name) != address;
}

static void patch_entry(Patch *patch, const Elf64_Rela *r)
{
    const NativeObject *o = patch->object;
    const UInt type = ELF64_R_TYPE(r->r_info);
    if ((!IS_LINKAGE(type) && !IS_ADDRESS(type)) || r->r_addend)
        return;
    const HChar *name = o->strings + o->symbols[ELF64_R_SYM(r->r_info)].st_name;
    UWord *place = (UWord *)(o->bias + r->r_offset), value = *place;
    Int row = jm_native_row(name);
    if (row < 0 && LIKELY(!has_deep_binding))
        return;
    if (!value || jm_native_is_stub(value)) // a weak symbol that nothing defines; an entry that has been patched
        return;
    const Bool is_unbound = IS_LINKAGE(type) && is_in_segment(o, value, PF_X) && jm_native_exported(o, name) != value;
    if (row < 0) {
        Addr replacement = replacement_of(name, value, is_unbound);
        if (replacement)
            write_entry(patch, place, replacement);
    } else if (is_unbound) {
        Addr found = only_definition(o, name);
        if (!found)
            write_entry(patch, place, jm_native_stub_unbound(row, value, place));
        else if (jm_native_is_in(found, jm_native_functions[row].soname))
            write_entry(patch, place, jm_native_stub(row, found));
    } else if (!is_programs_linkage(value, name) && jm_native_is_in(value, jm_native_functions[row].soname)) {
        write_entry(patch, place, jm_native_stub(row, value));
    }
}

// The last relocation of an entry that has a function; its content is an offset in the file before that.
static Bool is_relocated(const NativeObject *o, const Elf64_Rela *first, const Elf64_Rela *end)
{
    for (const Elf64_Rela *r = end; r-- > first;) {
        UInt type = ELF64_R_TYPE(r->r_info);
        UWord value = IS_LINKAGE(type) || IS_ADDRESS(type) ? *(const UWord *)(o->bias + r->r_offset) : 0;
        if (value)
            return value >= o->end - o->bias;
    }
    return False;
}

// The loader lists an object that another thread is loading before it has relocated it, and then writes its tables in
// order, those of calls last.
static Bool is_ready(const NativeObject *o)
{
    return o->bias == 0 || is_relocated(o, o->linkage, o->linkage + o->n_linkage) ||
           (o->n_linkage == 0 && is_relocated(o, o->relocations + o->n_relative, o->relocations + o->n_relocations));
}

static Bool has_wanted_among(const NativeObject *o, const Elf64_Rela *first, const Elf64_Rela *end)
{
    for (const Elf64_Rela *r = first; r < end; r++)
        if ((IS_LINKAGE(ELF64_R_TYPE(r->r_info)) || IS_ADDRESS(ELF64_R_TYPE(r->r_info))) &&
            jm_native_row(o->strings + o->symbols[ELF64_R_SYM(r->r_info)].st_name) >= 0)
            return True;
    return False;
}

// A large library has fifty times as many relocations as undefined symbols, which are not in its hash table.
static Bool has_wanted(const NativeObject *o)
{
    const UInt n = o->gnu_hash ? jm_gnu_hash_first(o->gnu_hash) : 0;
    if (!n)
        return has_wanted_among(o, o->relocations + o->n_relative, o->relocations + o->n_relocations) ||
               has_wanted_among(o, o->linkage, o->linkage + o->n_linkage);
    for (UInt i = 1; i < n; i++)
        if (jm_native_row(o->strings + o->symbols[i].st_name) >= 0)
            return True;
    return jm_native_may_be_in(o->gnu_hash); // it may call its own function by name, which leads elsewhere
}

static Bool patch_object(NativeObject *o, void *context)
{
    Patch patch = {o, False};
    if (o->is_patched)
        return False;
    if (!has_deep_binding && !has_wanted(o)) {
        o->is_patched = True;
        return False;
    }
    if (!is_ready(o)) {
        *(Bool *)context = False;
        return False;
    }
    o->is_patched = True;
    for (SizeT i = o->n_relative; i < o->n_relocations; i++)
        patch_entry(&patch, &o->relocations[i]);
    for (SizeT i = 0; i < o->n_linkage; i++)
        patch_entry(&patch, &o->linkage[i]);
    if (patch.is_open)
        protect_relro(o, PROT_READ);
    return False;
}

// A program may have copies of tables that belong to its libraries, those of virtual functions say.
static Bool patch_copies(NativeObject *program, void *context)
{
    Patch patch = {program, False};
    for (SizeT i = program->n_relative; i < program->n_relocations; i++) {
        const Elf64_Rela *r = &program->relocations[i];
        UWord *table = (UWord *)(program->bias + r->r_offset);
        if (!IS_COPY(ELF64_R_TYPE(r->r_info)) || (Addr)table % sizeof *table)
            continue;
        SizeT n = program->symbols[ELF64_R_SYM(r->r_info)].st_size / sizeof *table;
        for (SizeT w = 0; w < n; w++) {
            Addr stub = jm_native_stub_that_calls(table[w]);
            if (stub)
                write_entry(&patch, &table[w], stub);
        }
    }
    if (patch.is_open)
        protect_relro(program, PROT_READ);
    return True; // the first object is the program
}

Bool jm_native_patch(void)
{
    static Bool has_begun;
    Bool is_done = True;
    jm_native_each_object(patch_object, &is_done);
    if (!has_begun)
        jm_native_each_object(patch_copies, NULL);
    has_begun = True;
    return is_done;
}
