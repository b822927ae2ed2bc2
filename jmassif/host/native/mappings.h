// SPDX-License-Identifier: GPL-2.0-or-later
//
// The program's mappings, kept as the kernel lists them. What goes through hooks is entered at once; what the C library
// maps for itself is found when an address turns up that is not in the table, or when an object was loaded. Under the
// recorder's lock.

#ifndef JM_NATIVE_MAPPINGS_H
#define JM_NATIVE_MAPPINGS_H

#include "host/types.h"

// Read the kernel's list for the first time, and report it. With `is_late` the program has run before: memory without a
// file is taken for its heap's.
void jm_native_mappings_start(Bool is_late);

// An object was loaded or unloaded: find what has changed, and report it.
void jm_native_mappings_changed(void);

// Report what was found changed while another event was recorded. Cheap if there is nothing.
extern Bool jm_native_has_changes;
void jm_native_report_changes(void);

// Calls of the program that have succeeded.
void jm_native_mapped(Addr start, SizeT bytes, UInt protection, UInt flags, Int fd, ULong offset);
void jm_native_unmapped(Addr start, SizeT bytes);
void jm_native_protected(Addr start, SizeT bytes, UInt protection);
void jm_native_moved(Addr from, SizeT old_bytes, Addr to, SizeT new_bytes);

// A System V segment was attached or detached there; only the kernel knows its size.
void jm_native_attached(Addr start);
void jm_native_detached(Addr start);

// The stack of a new thread, which holds this address.
void jm_native_stack_mapped(Addr inside);

// The C library has given a block's own mapping back (free of a large block): its memory may be gone.
void jm_native_heap_unmapped(Addr block);

#endif
