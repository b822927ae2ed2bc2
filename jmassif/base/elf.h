// SPDX-License-Identifier: GPL-2.0-or-later
//
// Object files as they are mapped in the program: from a name to an address, and from an address to its function and
// the entry of its unwind table. The core has symbols of its own, but no public way from a name to an address; and of
// stripped files it knows nothing. Every read is checked (client_memory.h).

#ifndef JM_ELF_H
#define JM_ELF_H

#include "base/compat.h"

// The address of a dynamic symbol of the object file that is mapped around `inside`; 0 if it does not export it.
Addr jm_find_dynamic_symbol(Addr inside, const HChar *name);

// Where the function that holds `ip` starts, from the unwind table of its object file, which a stripped file keeps; 0
// if there is none for this address.
Addr jm_find_function_start(Addr ip);

// Whether the object file that is mapped around `inside` has such a table, in a form that is known.
Bool jm_has_unwind_table(Addr inside);

// The entry of that table for `ip` (a frame description in .eh_frame); 0 if there is none.
Addr jm_find_unwind_entry(Addr ip);

// Mappings have changed: what is remembered of them no longer holds.
void jm_elf_forget(void);

#endif
