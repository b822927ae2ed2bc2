// SPDX-License-Identifier: GPL-2.0-or-later
//
// What Python calls a thread: the name of its threading.Thread. It is looked up by the thread's identity in what that
// module keeps of the threads that run (threading._active), and read again as long as the thread runs Python, because
// a program may change it at any time.

#ifndef JM_PYTHON_THREAD_H
#define JM_PYTHON_THREAD_H

#include "base/compat.h"

// What is kept of a thread; zero: nothing yet.
typedef struct {
    Addr object; // its threading.Thread; 0: none has been found
    Addr type;   // the object's, by which another one in its place is known
    Addr name;   // the str that it was called by when last read
    UInt n_tries;
} PythonThread;

// To be called where the thread runs Python code, as often as one likes. The thread's name, which lasts until the next
// call, if it is another one than last time; NULL: it is the same, or there is none. The main thread is not looked for.
const HChar *jm_python_thread_name(ThreadId tid, PythonThread *known);

// The same at leisure: also of the main thread, and a name that has taken the place of another in memory is seen.
const HChar *jm_python_thread_name_now(ThreadId tid, PythonThread *known);

#endif
