// SPDX-License-Identifier: GPL-2.0-or-later
//
// Functions of object files, by their symbol tables: .symtab, of the file or of its separate debug file, and .dynsym.
// An index of a file is built at the first address in it; the oldest indexes are dropped while all are large. Names
// stay in the files. Where symbols overlap or share an address, the choice is that of Valgrind's core
// (m_debuginfo/storage.c).

#ifndef JM_NATIVE_FUNCTIONS_H
#define JM_NATIVE_FUNCTIONS_H

#include "host/host.h"

// The name of the function that holds an address in a mapping of a file: demangled, with its symbol's version; and
// whether the function begins there. NULL if there is none. The name holds until the next call.
const HChar *jm_function_at(const Mapping *code, Addr ip, Bool *is_entry);

// The address in the object's file of an address in a mapping of it, and what tells the file from a later one of the
// same path (docs/trace-format.md), if line tables of it are there: in the file, or in a separate one by build-id.
// Else 0. The text holds until the object changes.
ULong jm_line_address(const Mapping *code, Addr ip, const HChar **version);

typedef struct {
    const HChar *soname; // NULL if it has none
    Addr text, text_end; // .text, in this mapping's addresses
} ObjectFile;

// The object file behind a mapping of it; False if it is none. Of a new mapping, look whether the file has changed
// since it was read.
Bool jm_object_file(const Mapping *code, Bool is_new, ObjectFile *file);

#endif
