# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""What a script knows about its own stack when it allocates, for the test to compare with what was recorded.

``bytearray(here())`` allocates a block of a size that nothing else has, and leaves a note of the stack as
``sys._getframe`` shows it: file, qualified name and line of every frame, innermost first. Both happen on one line, so the
lines of all frames are those of the allocation. Every process writes its notes into a file of its own.

All that the functions need is in their defaults: they also run when the interpreter has cleared its modules.
"""

import ctypes
import itertools
import os
import sys

STEP = 256  # further apart than the headers that an object may need
if not getattr(sys, "_is_gil_enabled", lambda: True)():
    # Without the GIL a bytearray lies in a mapping of the interpreter's own allocator, and is no block of malloc.
    allocate = ctypes.CDLL(os.environ["WITNESS_LIBRARY"]).allocate
    allocate.argtypes, allocate.restype = [ctypes.c_size_t], range  # something that has a length
    sys.modules["__main__"].bytearray = allocate
sizes = itertools.count(1200 * STEP, STEP)  # above the sizes that the interpreter itself is fond of


def stack_of(frame):
    frames = []
    while frame is not None:
        code = frame.f_code
        name = getattr(code, "co_qualname", code.co_name)  # the qualified name is 3.11's
        frames.append((code.co_filename, name, frame.f_lineno))
        frame = frame.f_back
    return frames


DIRECTORY = os.environ["WITNESS"]
FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT


def note(size, stack, getpid=os.getpid, open=os.open, write=os.write, close=os.close, directory=DIRECTORY, flags=FLAGS):
    # Recursion as a number of times: a long string could have the size of a block that is noted.
    repeated = []
    for frame in stack:
        if repeated and repeated[-1][0] == frame:
            repeated[-1][1] += 1
        else:
            repeated.append([frame, 1])
    file = open(f"{directory}/{getpid()}", flags)
    write(file, f"{[size, repeated]!r}\n".encode())
    close(file)


def here(outer=(), sizes=sizes, stack_of=stack_of, note=note, frame=sys._getframe):
    """Notes the caller's stack, with frames further out that the interpreter does not show, and returns the size."""
    size = next(sizes)
    note(size, stack_of(frame(1)) + list(outer))
    return size


def nowhere():
    """Notes that no Python frame belongs to a block of the size that it returns."""
    size = next(sizes)
    note(size, [])
    return size
