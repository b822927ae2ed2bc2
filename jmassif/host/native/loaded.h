// SPDX-License-Identifier: GPL-2.0-or-later
//
// Objects as the loader has mapped them, with the tables through which they call each other. Unlike objects.h, this
// takes the loader's lock, so no object comes or goes meanwhile. Not to be called under the recorder's lock.

#ifndef JM_NATIVE_LOADED_H
#define JM_NATIVE_LOADED_H

#include "host/types.h"

#include <elf.h>

typedef struct {
    Addr bias, start, end; // all of its segments
    Addr relro_start, relro_end;
    const HChar *path; // the loader's; "" of the program
    const Elf64_Phdr *segments;
    UInt n_segments;
    const Elf64_Dyn *dynamic;
    const Elf64_Sym *symbols;
    const HChar *strings;
    const Elf64_Rela *relocations, *linkage; // of data; of calls
    SizeT n_relocations, n_linkage, n_relative;
    const UInt *gnu_hash;                  // NULL: it has none
    const HChar *soname, *rpath, *runpath; // NULL: none
    Bool is_from_start;                    // came with the program
    Bool is_patched;                       // or is not to be
    Bool is_loaded;
    const UWord *sample; // an entry with a stub, if there is one, else with a hook; NULL: none
    UWord sample_value;  // that was written there
} NativeObject;

// Run `each` over the objects, in the loader's order, until it returns true. An object keeps its place while it is
// loaded.
void jm_native_each_object(Bool (*each)(NativeObject *object, void *context), void *context);

// Inside `each`: the objects as an array.
NativeObject *jm_native_objects(UInt *n);

// Return whether an object of such a soname (a glob) has this address.
Bool jm_native_is_in(Addr address, const HChar *soname);

// Address of a function that the object exports; 0.
Addr jm_native_exported(const NativeObject *object, const HChar *name);

#endif
