# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""Python and native functions in turns; the test knows the order by the names."""

import ctypes
import os

from witness import here

held = []
native = ctypes.PyDLL(os.environ["WITNESS_LIBRARY"])


def third():
    held.append(bytearray(here()))


def second():
    third()


def second_by_bounce():
    native.bounce_object(ctypes.py_object(second))


def first():
    second_by_bounce()


def by_sort():
    sorted([1], key=lambda n: second())


native.bounce_object(ctypes.py_object(first))
by_sort()
