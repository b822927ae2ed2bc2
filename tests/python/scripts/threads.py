# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""Threads of Python, native threads, and native threads that call Python."""

import concurrent.futures
import ctypes
import os
import threading

from witness import here, nowhere

N = 4
held = []
native = ctypes.CDLL(os.environ["WITNESS_LIBRARY"])
with_lock = ctypes.PyDLL(os.environ["WITNESS_LIBRARY"])
native.allocate.restype = ctypes.c_void_p
barrier = threading.Barrier(N)


def work(n):
    held.append(bytearray(here()))
    barrier.wait()
    # The lock of the interpreter is released in here, and others run.
    native.allocate(ctypes.c_size_t(here()))
    barrier.wait()
    deeper(n)


def deeper(n):
    if n:
        return deeper(n - 1)
    native.allocate(ctypes.c_size_t(here()))


def callback():
    held.append(bytearray(here()))


def beside_native():
    """Native threads allocate while this one waits in a native call."""
    native.on_thread(ctypes.c_size_t(nowhere()), None, 1)
    native.on_thread(ctypes.c_size_t(nowhere()), None, 3)


threads = [threading.Thread(target=work, args=(n,), name=str(n)) for n in range(N)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()

with concurrent.futures.ThreadPoolExecutor(2) as pool:
    list(pool.map(deeper, range(4)))

beside_native()
# The thread's state is made anew for every call.
native.on_thread(ctypes.c_size_t(nowhere()), ctypes.py_object(callback), 3)
with_lock.bounce_object(ctypes.py_object(beside_native))
