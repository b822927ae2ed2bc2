// SPDX-License-Identifier: GPL-2.0-or-later
//
// Object files as they are mapped in the program: the address of a name; the function and the unwind entry of an
// address. The core has symbols too, but no public look-up by name, and it knows nothing of stripped files. Every read
// is checked (client_memory.h).

#pragma once

#include "host/types.h"

// Return the address of the ELF header of the object file mapped around `inside`; 0 if there is none.
Addr jm_elf_header(Addr inside);

// Return the address of a dynamic symbol of the object file mapped around `inside`; 0 if the file does not export it.
Addr jm_find_dynamic_symbol(Addr inside, const HChar *name);

// Return the start of the function that holds `ip`, from its object's unwind table, which stripped files keep; 0 if the
// table has no entry for this address.
Addr jm_find_function_start(Addr ip);

// Return whether the object file mapped around `inside` has an unwind table of a known form.
Bool jm_has_unwind_table(Addr inside);

// Return the unwind entry for `ip` (a frame description in .eh_frame); 0 if the table has no entry for it.
Addr jm_find_unwind_entry(Addr ip);

// Drop the cached tables. Call when mappings change.
void jm_elf_forget(void);
