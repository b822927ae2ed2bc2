// SPDX-License-Identifier: GPL-2.0-or-later
//
// Python frames. In an interpreter the native stack shows only _PyEval_EvalFrameDefault. The function and line of each
// activation are in the interpreter's own structures, which are read from the program's memory at the allocation. Every
// read is checked. Implausible data yields fewer frames, never a crash or a guess.

#pragma once

#include "python/layout.h"
#include "symbols/symbol.h"

// Check a newly mapped object file for an interpreter. `code` is an address inside it.
void jm_python_object(const HChar *path, Addr code);

// The layout of the interpreter; NULL without a supported one. Sets the addresses of _PyRuntime (in 3.6 of
// _PyThreadState_Current) and of the first interpreter's state (0 before it exists).
const PythonLayout *jm_python_interpreter(Addr *runtime, Addr *interpreter);

// True once when the interpreter begins to free what it holds, for a host that does not see Py_FinalizeEx called.
Bool jm_python_begins_to_end(void);

// The address of a symbol that the interpreter's object file exports; 0 if it does not.
Addr jm_python_symbol(const HChar *name);

// Merge native and Python frames into keys, innermost first: code addresses or Python frames (jm_python_is_frame).
// Native frames of the evaluator are replaced by the Python frames that they run. `sps` has `n` + 1 stack pointers; the
// last is the next outer frame's, or 0. `is_late`: the innermost frame may have called Python code, which is left out.
// Writes at most `max` keys and returns their number. Returns 0 and writes nothing if there is no Python frame.
// `*n_same`: outermost native frames that are those of the thread's last stack; set to the number of outermost keys
// that are, which are not written.
UInt jm_python_interleave(ThreadId tid, const Addr *ips, const Addr *sps, UInt n, Bool is_late, Addr *keys, UInt max,
                          UInt *n_same);

// The thread's innermost Python frame: equal if it is the same, while that cannot end. 0 if there is none.
Addr jm_python_innermost(ThreadId tid);

// The top bit marks keys of Python frames: no program address has it set.
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
