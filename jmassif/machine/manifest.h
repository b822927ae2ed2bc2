// SPDX-License-Identifier: GPL-2.0-or-later
//
// The manifest describes the run and its machine: the keys that make two runs comparable. Any source may be missing;
// its key is then left out.

#pragma once

#include "host/types.h"

// Writes the keys known at the start: command, board, JetPack, packages, kernel, memory, environment, versions.
void jm_manifest_write(void);

// Call when the program has read a variable of its environment. `value` is NULL if unset. Covers variables that the
// program, or its script, set after the start.
void jm_manifest_variable(const HChar *name, const HChar *value);

// Call when an object file was mapped. The file gives the versions of the interpreter and the framework.
void jm_manifest_object(const HChar *soname, const HChar *path);

// Does the device share the host's memory (unified), or has it its own (discrete)? Known from --memory, or set from a
// query of the device.
Bool jm_memory_model_is_known(void);
void jm_memory_model_set(Bool is_discrete);

// True if a query has shown memory of the device's own, which the machine's figures do not include.
Bool jm_memory_is_measured_apart(void);

// True if device memory is separate from the host's, as queried or set by --memory.
Bool jm_memory_is_discrete(void);
