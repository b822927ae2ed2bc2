// SPDX-License-Identifier: GPL-2.0-or-later
//
// Python frames. Inside an interpreter the native stack says _PyEval_EvalFrameDefault and no more; which function and
// line each of these runs stands in the interpreter's own structures, which are read from the program's memory at the
// moment of the allocation. Every read is checked. What cannot be right yields fewer frames, never a crash and never a
// guess.

#ifndef JM_PYTHON_H
#define JM_PYTHON_H

#include "base/compat.h"
#include "stack/python_layout.h"
#include "stack/symbol.h"

// An object file was mapped: it may be an interpreter. `code` is an address inside it.
void jm_python_object(const HChar *path, Addr code);

// How the interpreter is laid out; NULL: there is none that is known. Sets where _PyRuntime and the first
// interpreter's state are (0: it has none yet).
const PythonLayout *jm_python_interpreter(Addr *runtime, Addr *interpreter);

// A symbol that the interpreter's object file exports; 0: it does not.
Addr jm_python_symbol(const HChar *name);

// A stack, innermost first, as keys: code addresses, or Python frames (jm_python_is_frame).
// Replaces the interpreter's native frames in `ips`, whose stack pointers are `sps` (one more than `n`; the last is
// that of the next outer frame, 0 if there is none), by the Python frames that they run, and writes at most `max` keys.
// Returns their number; 0, and writes none: there is no Python frame.
UInt jm_python_interleave(ThreadId tid, const Addr *ips, const Addr *sps, UInt n, Addr *keys, UInt max);

// Keys of Python frames have the top bit set, which no address of a program has.
#define JM_PYTHON_FRAME_KEY (1ULL << 63)
static inline Bool jm_python_is_frame(Addr key)
{
    return (key & JM_PYTHON_FRAME_KEY) != 0;
}
static inline FrameId jm_python_frame(Addr key)
{
    return (FrameId)key;
}

void jm_python_write_counters(void);

void jm_python_stats(void); // tells what it keeps (stats.h)

#endif
