# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""Imported by modules.py."""

from collections import namedtuple

import numpy

Pair = namedtuple("Pair", "left right")


def table():
    return numpy.ones(1 << 20)


def pairs():
    return (Pair(i, None) for i in range(1 << 30, (1 << 30) + 80_000))


TABLE = table()
