// SPDX-License-Identifier: GPL-2.0-or-later
//
// What this run ran on: the keys that make two runs comparable. Every source may be missing, which is normal.

#ifndef JM_MANIFEST_H
#define JM_MANIFEST_H

#include "base/compat.h"

// Writes what is known at the start: command, board, JetPack, packages, kernel, memory, environment, versions.
void jm_manifest_write(void);

// The program has asked its environment for a variable, and this is what it was told; NULL: there is none. What it, or
// its script, has set since the start is the run's.
void jm_manifest_variable(const HChar *name, const HChar *value);

// An object file was mapped: the interpreter's and the framework's versions are told by them.
void jm_manifest_object(const HChar *soname, const HChar *path);

#endif
