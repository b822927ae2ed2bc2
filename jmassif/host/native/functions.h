// SPDX-License-Identifier: GPL-2.0-or-later
//
// Functions of object files, by their symbol tables: .symtab, of the file or of its separate debug file, and .dynsym.
// An index of a file is built at the first address in it; the oldest indexes are dropped while all are large. Names
// stay in the files. Where symbols overlap or share an address, the choice is that of Valgrind's core
// (m_debuginfo/storage.c).

#ifndef JM_NATIVE_FUNCTIONS_H
#define JM_NATIVE_FUNCTIONS_H

#include "host/host.h"

// Find the function that holds an address in a mapping of a file. The symbol is as in the file, and holds until the
// next call. False if there is none.
Bool jm_function_at(const Mapping *code, Addr ip, const HChar **symbol, Bool *is_entry);

// What is known of the object file behind a mapping of it; NULL if it is none.
typedef struct {
    const HChar *soname; // NULL if it has none
    Addr text, text_end; // .text, in this mapping's addresses
} ObjectFile;
Bool jm_object_file(const Mapping *code, ObjectFile *file);

void jm_functions_stats(void);

#endif
