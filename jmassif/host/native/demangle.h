// SPDX-License-Identifier: GPL-2.0-or-later
//
// Names of C++ and Rust functions as their authors wrote them, by libiberty (GPL and LGPL), which Valgrind's core has a
// copy of.

#ifndef JM_NATIVE_DEMANGLE_H
#define JM_NATIVE_DEMANGLE_H

#include "host/types.h"

// The name that a symbol stands for, or the symbol itself. Holds until the next call.
const HChar *jm_demangled(const HChar *symbol);

#endif
