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

// Return whether the object file mapped around `inside` has an unwind table of a known form.
Bool jm_has_unwind_table(Addr inside);

// Return an address from the entry for `ip` in its object's unwind table, which stripped files keep: the function's, or
// that of its frame description in .eh_frame; 0 if the table has no entry for `ip`.
typedef enum { UNWIND_FUNCTION, UNWIND_DESCRIPTION } UnwindAddress;
Addr jm_find_unwind_entry(Addr ip, UnwindAddress which);

// Drop the cached tables. Call when mappings change.
void jm_elf_forget(void);
