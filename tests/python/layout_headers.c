// SPDX-License-Identifier: GPL-2.0-or-later
//
// Where a release of CPython keeps what python_layout.c says of it, as its own headers have it: a line "field offset"
// for each field of PythonLayout that the release has. With an argument, from 3.13 on: where in _Py_DebugOffsets it
// publishes each, which is a row of debug_positions.

#define Py_BUILD_CORE 1
#include <Python.h>
#include <frameobject.h>
#include <stddef.h>
#include <stdio.h>

#define SINCE(minor) (PY_VERSION_HEX >= (0x03000000 | (minor) << 16))

#if SINCE(9)
#include <internal/pycore_interp.h>
#include <internal/pycore_runtime.h>
#elif SINCE(8)
#include <internal/pycore_pystate.h>
#elif SINCE(7)
#include <internal/pystate.h>
#endif
#if SINCE(11)
#include <internal/pycore_frame.h>
typedef _PyInterpreterFrame Frame;
#else
typedef PyFrameObject Frame;
#endif
#if SINCE(11) && !SINCE(13)
typedef _PyCFrame Record;
#elif SINCE(10) && !SINCE(13)
typedef CFrame Record;
#endif

#define TELL(field, type, member) printf("%s %zu\n", #field, offsetof(type, member))

static void tell_positions(void)
{
#if SINCE(13)
#define PUBLISHED(field, member) TELL(field, _Py_DebugOffsets, member)
    PUBLISHED(interpreters_head, runtime_state.interpreters_head);
    PUBLISHED(interpreter_next, interpreter_state.next);
    PUBLISHED(interpreter_threads, interpreter_state.threads_head);
    PUBLISHED(thread_next, thread_state.next);
    PUBLISHED(thread_interpreter, thread_state.interp);
    PUBLISHED(thread_frame, thread_state.current_frame);
    PUBLISHED(thread_id, thread_state.thread_id);
    PUBLISHED(frame_previous, interpreter_frame.previous);
    PUBLISHED(frame_code, interpreter_frame.executable);
    PUBLISHED(frame_instruction, interpreter_frame.instr_ptr);
    PUBLISHED(frame_owner, interpreter_frame.owner);
    PUBLISHED(code_filename, code_object.filename);
    PUBLISHED(code_plain_name, code_object.name);
    PUBLISHED(code_name, code_object.qualname);
    PUBLISHED(code_lines, code_object.linetable);
    PUBLISHED(code_firstlineno, code_object.firstlineno);
    PUBLISHED(code_bytes, code_object.co_code_adaptive);
    PUBLISHED(string_ascii, unicode_object.asciiobject_size);
#if SINCE(14)
    PUBLISHED(frame_copy, interpreter_frame.tlbc_index);
    PUBLISHED(code_copies, code_object.co_tlbc);
#endif
#endif
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        tell_positions();
        return 0;
    }
#if SINCE(7)
    TELL(interpreters_head, _PyRuntimeState, interpreters.head);
#endif
    TELL(interpreter_next, PyInterpreterState, next);
    TELL(thread_next, PyThreadState, next);
    TELL(thread_interpreter, PyThreadState, interp);
    TELL(thread_id, PyThreadState, thread_id);
    TELL(code_firstlineno, PyCodeObject, co_firstlineno);
    TELL(code_filename, PyCodeObject, co_filename);
    TELL(code_plain_name, PyCodeObject, co_name);
    printf("string_ascii %zu\n", sizeof(PyASCIIObject));
    printf("string_compact %zu\n", sizeof(PyCompactUnicodeObject));

#if SINCE(11)
    TELL(interpreter_threads, PyInterpreterState, threads.head);
    TELL(frame_previous, Frame, previous);
    TELL(frame_owner, Frame, owner);
    TELL(code_name, PyCodeObject, co_qualname);
    TELL(code_bytes, PyCodeObject, co_code_adaptive);
#else
    TELL(interpreter_threads, PyInterpreterState, tstate_head);
    TELL(thread_frame, PyThreadState, frame);
    TELL(frame_previous, Frame, f_back);
    TELL(frame_instruction, Frame, f_lasti);
    TELL(code_name, PyCodeObject, co_name);
    TELL(code_bytes, PyCodeObject, co_code);
#endif

#if SINCE(13)
    TELL(thread_frame, PyThreadState, current_frame);
    TELL(frame_code, Frame, f_executable);
    TELL(frame_instruction, Frame, instr_ptr);
#else
    TELL(frame_code, Frame, f_code);
#endif
#if SINCE(11) && !SINCE(13)
    TELL(thread_frame, PyThreadState, cframe);
    TELL(frame_instruction, Frame, prev_instr);
    TELL(cframe_frame, Record, current_frame);
#endif
#if SINCE(10) && !SINCE(13)
    TELL(cframe_previous, Record, previous);
#endif
#if SINCE(10) && !SINCE(12)
    TELL(thread_cframe, PyThreadState, cframe);
    TELL(root_cframe, PyThreadState, root_cframe);
#endif
#if SINCE(11) && !SINCE(12)
    TELL(frame_is_entry, Frame, is_entry);
#endif

#if SINCE(10)
    TELL(code_lines, PyCodeObject, co_linetable);
#else
    TELL(code_lines, PyCodeObject, co_lnotab);
#endif

#if SINCE(15)
    TELL(thread_base, PyThreadState, base_frame);
#endif
#if SINCE(14)
    printf("first_shim_owner %d\n", FRAME_OWNED_BY_INTERPRETER);
#elif SINCE(12)
    printf("first_shim_owner %d\n", FRAME_OWNED_BY_CSTACK);
#elif SINCE(11)
    printf("first_shim_owner %d\n", FRAME_OWNED_BY_FRAME_OBJECT + 1);
#endif
    return 0;
}
