// SPDX-License-Identifier: GPL-2.0-or-later
//
// Object files as the loader lists them, and their exported names. Nothing here takes the loader's lock or calls it:
// use it at the start, or where no other thread loads a library.

#ifndef JM_NATIVE_OBJECTS_H
#define JM_NATIVE_OBJECTS_H

#include "host/types.h"

// An object of the loader's list.
typedef struct {
    Addr bias;         // to be added to the file's addresses
    const HChar *name; // "" for the program
    Addr dynamic;      // its dynamic section
} LoadedObject;

// Address of a function that the object exports; 0 if it does not.
Addr jm_exported_by(const LoadedObject *object, const HChar *name);

// Address of a hook that this library exports; 0 if it does not.
Addr jm_exported_by_own(const HChar *name);

// Stop exporting the functions that `is_one` chooses. An object that is loaded later finds the next library's.
void jm_withdraw_own(Bool (*is_one)(const HChar *name));

// A symbol's name in a table of "GNU hash"; and whether the table has a symbol of such a hash.
UInt jm_gnu_hash(const HChar *name);
Bool jm_gnu_hash_has(const UInt *table, UInt hash);

// Number of symbols before those of the table, which are not in it. 0 if the table is empty: it may not say.
UInt jm_gnu_hash_first(const UInt *table);

#endif
