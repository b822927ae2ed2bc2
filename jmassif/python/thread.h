// SPDX-License-Identifier: GPL-2.0-or-later
//
// The name of a thread's threading.Thread. It is looked up by the thread's identity in threading._active, the module's
// table of running threads. The name is read again as long as the thread runs Python, because the program can change
// it.

#ifndef JM_PYTHON_THREAD_H
#define JM_PYTHON_THREAD_H

#include "host/types.h"

// State kept per thread; starts as zero.
typedef struct {
    Addr object; // its threading.Thread; 0 until found
    Addr type;   // the object's type, to detect another object at its address
    Addr name;   // the str of the name last read
    UInt n_tries;
} PythonThread;

// The thread's name if it differs from that of the last call, else NULL. The text lasts until the next call. Call it
// when the thread runs Python code, as often as you like, but not for the main thread; and `is_at_leisure` at
// snapshots, for any thread: that is slower, and detects a new name at the address of the old one.
const HChar *jm_python_thread_name(ThreadId tid, PythonThread *known, Bool is_at_leisure);

#endif
