# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""Threads that allocate at the same time, without the GIL truly so, while others begin and end."""

import ctypes
import os
import threading

from witness import here

N, TIMES = 4, 25
native = ctypes.CDLL(os.environ["WITNESS_LIBRARY"])
native.allocate.argtypes, native.allocate.restype = [ctypes.c_size_t], ctypes.c_void_p
barrier = threading.Barrier(N)
is_over = threading.Event()


class Worker:
    def deeper(self, n):
        if n:
            return self.deeper(
                n - 1,
            )
        native.allocate(here())


def work(n):
    barrier.wait()
    for i in range(TIMES):
        if i % 2:
            Worker().deeper(n)
        else:
            [native.allocate(here()) for _ in range(1)]


def come_and_go():
    while not is_over.is_set():
        passing = threading.Thread(target=int)
        passing.start()
        passing.join()


threads = [threading.Thread(target=work, args=(n,)) for n in range(N)]
others = [threading.Thread(target=come_and_go) for _ in range(2)]
for thread in others + threads:
    thread.start()
for thread in threads:
    thread.join()
is_over.set()
for thread in others:
    thread.join()
