# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""Native code that calls back."""

import ctypes
import functools
import json
import operator
import os
import re
import signal
import sys

from witness import here

held = []
native = ctypes.CDLL(os.environ["WITNESS_LIBRARY"])
CALLBACK = ctypes.CFUNCTYPE(None)


def allocate(*arguments):
    held.append(bytearray(here()))
    return 1


class Compared:
    def __init__(self, n):
        self.n = n

    def __lt__(self, other):
        allocate()
        return self.n < other.n

    def __eq__(self, other):
        allocate()
        return self.n == other.n

    def __hash__(self):
        allocate()
        return 1

    def __len__(self):
        allocate()
        return 2

    def __iter__(self):
        allocate()
        return iter([1, 2])

    def __index__(self):
        allocate()
        return 1


def by_builtins():
    sorted([2, 1], key=allocate)
    sorted([2, 1], key=lambda n: allocate(n))
    [2, 1].sort(key=lambda n: allocate(n))
    list(map(lambda n: allocate(n), [1]))
    list(filter(lambda n: allocate(n), [1]))
    max([1, 2], key=lambda n: allocate(n))
    functools.reduce(lambda a, b: allocate(a, b), [1, 2])
    re.sub("a", lambda match: str(allocate()), "a")
    json.loads("{}", object_hook=allocate)
    next(iter(allocate, 2))
    sorted(
        [2, 1],
        key=functools.cmp_to_key(
            lambda a, b: allocate(a, b),
        ),
    )
    operator.methodcaller("__len__")(Compared(1))


def by_protocols():
    sorted([Compared(2), Compared(1)])
    {Compared(1): 1}[Compared(1)]
    len(Compared(1))
    list(Compared(1))
    [1, 2][Compared(1)]
    Compared(1) in [Compared(2)]


def by_ctypes():
    native.bounce(CALLBACK(allocate))
    native.bounce(CALLBACK(lambda: native.bounce(CALLBACK(allocate))))
    ctypes.PyDLL(os.environ["WITNESS_LIBRARY"]).bounce(CALLBACK(allocate))


def by_signal():
    signal.signal(signal.SIGUSR1, lambda number, frame: allocate())
    os.kill(os.getpid(), signal.SIGUSR1)
    for _ in range(10):
        pass


def traced():
    x = 1
    return x


def by_tracing():
    sys.setprofile(lambda frame, event, argument: None)
    traced()
    allocate()
    sys.setprofile(None)
    sys.settrace(lambda frame, event, argument: held.append(bytearray(here())))
    traced()
    sys.settrace(None)
    allocate()


by_builtins()
by_protocols()
by_ctypes()
by_signal()
by_tracing()
